"""The six networks: parameter counts of the paper's Table 1, shapes, initial weights, dropout."""

import math

import pytest

torch = pytest.importorskip("torch")

from isorun.zoo.models.lenet import lenet1, lenet4, lenet5  # noqa: E402
from isorun.zoo.models.resnet import GeneratorDropout, made_wide_resnet, resnet38, resnet56, wide_resnet_28_10  # noqa: E402  # noqa: E402


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("make", "parameters", "shape"),
    [
        (lenet1, 7_206, (1, 28, 28)),
        (lenet4, 69_362, (1, 28, 28)),
        (lenet5, 107_786, (1, 28, 28)),
        (resnet38, 565_386, (3, 32, 32)),
        (resnet56, 857_706, (3, 32, 32)),
    ],
)
def test_a_network_has_the_published_number_of_parameters_and_a_score_a_class(make, parameters, shape):
    network = make(10, generator())
    assert count(network) == parameters
    scores = network(torch.zeros(2, *shape))
    assert scores.shape == (2, 10)
    assert torch.isfinite(scores).all()


def test_wrn_28_10_has_the_published_number_of_parameters():
    assert count(wide_resnet_28_10(100, generator(), 0.3)) == 36_536_884


def test_a_wide_resnet_gives_a_score_a_class():
    assert made_wide_resnet(10, 1, 100, generator(), 0.3)(torch.zeros(2, 3, 32, 32)).shape == (2, 100)


def test_building_a_network_draws_nothing_from_the_global_generator():
    before = torch.get_rng_state()
    lenet5(10, generator())
    resnet38(10, generator())
    made_wide_resnet(10, 1, 10, generator(), 0.3)
    assert torch.equal(before, torch.get_rng_state())


def test_equal_generators_give_equal_weights_and_others_do_not():
    first, same, other = (resnet38(10, generator(seed)).first.weight for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_lenet_weights_fill_the_glorot_interval_and_biases_are_zero():
    layer = lenet5(10, generator()).dense[0]
    limit = math.sqrt(6 / (784 + 120))
    assert 0.99 * limit < layer.weight.abs().max().item() <= limit
    assert layer.weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.02)
    assert not layer.bias.any()


def test_resnet_kernels_are_normal_cut_at_two_deviations_with_the_variance_of_he():
    layer = resnet38(10, generator()).blocks[-1].second
    deviation = math.sqrt(2 / (64 * 9))
    assert layer.weight.std().item() == pytest.approx(deviation, rel=0.02)
    assert layer.weight.abs().max().item() <= 2 * deviation / 0.8796 * 1.0001


def test_wide_resnet_kernels_have_the_variance_of_the_authors_choice():
    layer = made_wide_resnet(10, 4, 10, generator(), 0.0).blocks[-1].second
    assert layer.weight.std().item() == pytest.approx(math.sqrt(2 / (256 * 9)), rel=0.02)


def test_the_final_dense_layer_of_torch_and_ours_agree_when_given_the_same_weights():
    network = lenet1(10, generator())
    images = torch.rand(3, 1, 28, 28, generator=generator(5))
    relu, pool = torch.nn.functional.relu, torch.nn.functional.max_pool2d
    inner = images
    for convolution in network.convolutions:
        inner = pool(relu(convolution(inner)), 2)
    torch.testing.assert_close(network(images), network.dense[0](inner.flatten(1)))


def test_dropout_drops_its_share_enlarges_the_rest_and_passes_gradients_where_it_passed_values():
    layer = GeneratorDropout(0.3)
    layer.generator = generator(3)
    values = torch.ones(100, 1000, requires_grad=True)
    dropped = layer(values)
    dropped.sum().backward()
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert dropped.max().item() == pytest.approx(1 / 0.7)
    assert torch.equal(values.grad, dropped.detach())


def test_dropout_draws_from_its_own_generator_alone_and_does_nothing_in_evaluation():
    layer = GeneratorDropout(0.5)
    layer.generator = generator(3)
    before = torch.get_rng_state()
    first, second = layer(torch.ones(64)), layer(torch.ones(64))
    assert torch.equal(before, torch.get_rng_state())
    assert not torch.equal(first, second)
    layer.generator = generator(3)
    assert torch.equal(layer(torch.ones(64)), first)
    assert torch.equal(layer.eval()(torch.ones(64)), torch.ones(64))
