import math

import pytest

torch = pytest.importorskip("torch")

from isorun.zoo.models.few_shot import (  # noqa: E402
    Conv4,
    MatchingNetwork,
    NamedDropout,
    PrototypicalNetwork,
    squared_distances,
)
from isorun.zoo.models.few_shot_sizes import conv4_features, parameters  # noqa: E402
from isorun.zoo.models.initialisation import built_empty  # noqa: E402
from isorun.zoo.models.tadam import (  # noqa: E402
    ResNet12,
    Tadam,
)


def learner(make, seed=1):
    built = built_empty(make)
    built.initialise(torch.Generator().manual_seed(seed))
    return built


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


MAKERS = {
    "matching": lambda: MatchingNetwork(Conv4(1, 4), 4),
    "prototypical": lambda: PrototypicalNetwork(Conv4(1, 4)),
    "tadam": lambda: Tadam(ResNet12(1, 4), classes=6),
}
all_methods = pytest.mark.parametrize("method", MAKERS)


@pytest.mark.parametrize(
    ("method", "make", "settings"),
    [
        ("prototypical", lambda: PrototypicalNetwork(Conv4(1)), {"channels": 1, "side": 28}),
        ("prototypical", lambda: PrototypicalNetwork(Conv4(3)), {}),
        ("prototypical", lambda: PrototypicalNetwork(ResNet12(3)), {"backbone": "resnet12"}),
        ("matching", lambda: MatchingNetwork(Conv4(3), 1600), {}),
        ("matching", lambda: MatchingNetwork(Conv4(1, 8), 8), {"channels": 1, "side": 28, "width": 8}),
        ("matching", lambda: MatchingNetwork(ResNet12(3, 8), 64), {"backbone": "resnet12", "width": 8}),
        ("tadam", lambda: Tadam(ResNet12(3), 64), {}),
        ("tadam", lambda: Tadam(ResNet12(1, 4), 9), {"channels": 1, "width": 4, "classes": 9}),
    ],
)
def test_the_stated_parameter_counts_are_those_of_the_networks(method, make, settings):
    with torch.device("meta"):
        network = make()
    assert parameters(method, **settings) == sum(parameter.numel() for parameter in network.parameters())


def test_conv4_has_the_parameters_that_others_count():
    assert parameters("prototypical", channels=1, side=28) == 111_936
    assert parameters("prototypical", channels=3, side=84) == 113_088


@pytest.mark.parametrize(("side", "size"), [(28, 64), (32, 256), (84, 1600)])
def test_conv4_features_have_the_stated_size(side, size):
    network = learner(lambda: Conv4(1, 64))
    assert network(numbers(2, 1, side, side)).shape == (2, size)
    assert conv4_features(side) == size


def test_conv4_cuts_negative_values_off_before_or_after_pooling_alike():
    network = learner(lambda: Conv4(1, 4)).eval()
    images = numbers(3, 1, 16, 16)
    expected = images
    for convolution, norm in zip(network.convolutions, network.norms, strict=True):
        expected = torch.nn.functional.max_pool2d(torch.relu(norm(convolution(expected))), 2)
    assert torch.equal(network(images), expected.flatten(1))


@all_methods
def test_probabilities_of_the_classes_add_up_to_one(method):
    log_probabilities = learner(MAKERS[method])(numbers(2, 3, 5, 1, 16, 16), 2)
    assert log_probabilities.shape == (2, 9, 3)
    assert log_probabilities.exp().sum(-1).allclose(torch.ones(2, 9), atol=1e-5)


@all_methods
def test_every_parameter_learns(method):
    network = learner(MAKERS[method])
    for encoder in [*network.gammas, *network.betas] if method == "tadam" else []:
        torch.nn.init.constant_(encoder.multiplier, 0.5)
    images = numbers(1, 3, 5, 1, 16, 16)
    loss = -network(images, 2)[0, :, 0].mean()
    if method == "tadam":
        loss = loss + network.classify(images[0, :, 0]).square().mean()
    loss.backward()
    names = [name for name, parameter in network.named_parameters() if not parameter.grad.abs().sum() > 0]
    assert [name for name in names if not name.endswith(("bias", "norm.weight"))] == []


@all_methods
def test_initial_weights_depend_on_the_generator_alone(method):
    torch.manual_seed(1)
    first = learner(MAKERS[method], seed=5).state_dict()
    torch.manual_seed(2)
    state = torch.random.get_rng_state()
    again, other = learner(MAKERS[method], seed=5).state_dict(), learner(MAKERS[method], seed=6).state_dict()
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)
    assert all(value.isfinite().all() for value in first.values())


@all_methods
def test_tasks_of_a_batch_do_not_mix(method):
    network = learner(MAKERS[method]).eval()
    images = numbers(3, 4, 5, 1, 16, 16)
    together = network(images, 2)
    alone = torch.cat([network(images[k : k + 1], 2) for k in range(3)])
    assert together.allclose(alone, atol=1e-5)


@all_methods
def test_queries_do_not_see_each_other(method):
    network = learner(MAKERS[method]).eval()
    images = numbers(1, 3, 6, 1, 16, 16)
    whole = network(images, 2).unflatten(1, (3, 4))
    some = network(images[:, :, :4], 2).unflatten(1, (3, 2))
    assert whole[:, :, :2].allclose(some, atol=1e-5)


def test_squared_distances_are_those_of_the_definition():
    query, prototypes = numbers(2, 7, 5), numbers(2, 3, 5, seed=1)
    expected = torch.cdist(query.double(), prototypes.double()).square()
    assert squared_distances(query, prototypes).double().allclose(expected, atol=1e-5)


def test_a_prototypical_network_compares_with_class_means():
    support = torch.tensor([[[[0.0, 0.0], [2.0, 0.0]], [[5.0, 0.0], [5.0, 0.0]]]])
    query = torch.tensor([[[[1.0, 0.0]], [[4.0, 0.0]]]])
    probabilities = PrototypicalNetwork(torch.nn.Identity()).compare(support, query).exp()
    assert probabilities[0, 0].tolist() == pytest.approx([1 / (1 + math.exp(-16)), 1 / (1 + math.exp(16))])
    assert probabilities[0, 1].tolist() == pytest.approx([1 / (1 + math.exp(8)), 1 / (1 + math.exp(-8))])


def test_a_matching_network_without_context_is_a_cosine_attention():
    network = MatchingNetwork(torch.nn.Identity(), 2)
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    support = torch.tensor([[[[1.0, 0.0], [3.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]]]])
    query = torch.tensor([[[[5.0, 0.0]], [[0.0, 1.0]]]])
    probabilities = network.compare(support, query).exp()[0]
    near = math.e / (math.e + 1)
    assert probabilities.flatten().tolist() == pytest.approx([near, 1 - near, 1 - near, near], rel=1e-4)


def test_context_changes_what_a_matching_network_sees():
    network = learner(lambda: MatchingNetwork(Conv4(1, 4), 4)).eval()
    features = numbers(1, 3, 4, 4)
    moved = features.clone()
    moved[0, 2, 0] += 3
    query, shots = features[:, :, 2:], slice(0, 2)
    first, second = (network.compare(part[:, :, shots], query) for part in (features, moved))
    within = first[..., :2].diff() - second[..., :2].diff()
    assert within.abs().max() > 1e-4


def test_tadam_starts_without_conditioning():
    network = learner(MAKERS["tadam"]).eval()
    images = numbers(1, 3, 5, 1, 16, 16)
    features = network.backbone(images.flatten(0, 2)).unflatten(0, (1, 3, 5))
    plain = network.compare(features[:, :, :2], features[:, :, 2:])
    assert network(images, 2).allclose(plain, atol=1e-5)
    before = network.train()(images, 2)
    torch.nn.init.constant_(network.gammas[4].multiplier, 2.0)
    assert not network(images, 2).allclose(before, atol=1e-3)


def test_tadam_scales_its_metric():
    support = torch.tensor([[[[0.0]], [[3.0]]]])
    query = torch.tensor([[[[1.0]], [[1.0]]]])
    with torch.device("cpu"):
        network = Tadam(ResNet12(1, 1), 2, metric_scale=0.5)
    assert network.compare(support, query)[0, 0].diff().item() == pytest.approx(-0.5)


def test_tadam_penalises_its_24_multipliers():
    ((own, weight),) = learner(MAKERS["tadam"]).penalties()
    assert len(own) == 24
    assert weight == 0.01


def test_named_dropout_draws_from_its_generator_alone():
    features = torch.ones(200, 50)
    state = torch.random.get_rng_state()
    first, again = (NamedDropout(0.3, torch.Generator().manual_seed(4))(features) for _ in range(2))
    assert torch.equal(first, again)
    assert torch.equal(state, torch.random.get_rng_state())
    assert first.mean().item() == pytest.approx(1, abs=0.03)
    assert (first == 0).double().mean().item() == pytest.approx(0.3, abs=0.03)
    assert torch.equal(NamedDropout(0.3).eval()(features), features)
