"""Steps, evaluation, optimizers and the capture's bookkeeping, against plain torch."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from isorun.zoo.data.made import made_images  # noqa: E402
from isorun.zoo.models.lenet import lenet1  # noqa: E402
from isorun.zoo.studies.ase20.training.images import (  # noqa: E402
    made_material,
    made_preparation,
)
from isorun.zoo.studies.ase20.training.loop import (  # noqa: E402
    Course,
    Snapshot,
    Step,
    Training,
    evaluated,
    made_batches,
    made_optimizer,
    made_runner,
)
from isorun.zoo.studies.ase20.training.networks import (  # noqa: E402
    factor_seeds,
    made_generators,
    made_network,
)
from isorun.zoo.studies.ase20.training.recipes import RECIPES  # noqa: E402
from isorun.zoo.training import set_learning_rate  # noqa: E402


def lenet_training(train=100, batch=32, epochs=3, test=40):
    material = made_material(made_images("mnist", train=train, test=test), "cpu")
    generators = made_generators(factor_seeds(1), "cpu")
    network = made_network("lenet1", 10, generators, "cpu", channels_last=False)
    return network, material, Training(Course(RECIPES["lenet1"], epochs, batch, False), network, material, generators)


def resnet_step():
    material = made_material(made_images("cifar10", train=16, test=8), "cpu")
    generators = made_generators(factor_seeds(1), "cpu")
    recipe = RECIPES["resnet38"]
    network = made_network("resnet38", 10, generators, "cpu", channels_last=True)
    preparation = made_preparation(recipe.normalisation, material.train_images, recipe.moves, channels_last=True)
    loss_sum = torch.zeros((), dtype=torch.float64)
    return Step(network, made_optimizer(recipe, network, "cpu"), material, preparation, loss_sum), generators


def test_an_epoch_equals_the_plain_loop_over_the_same_order():
    network, material, training = lenet_training(train=70)
    plain = lenet1(10, made_generators(factor_seeds(1), "cpu").weights)
    optimizer = torch.optim.SGD(plain.parameters(), lr=RECIPES["lenet1"].learning_rate)
    order = torch.randperm(70, generator=made_generators(factor_seeds(1), "cpu").order)
    found = training.train_epoch(0)
    images = material.train_images.permute(0, 3, 1, 2).float() / 255
    total = 0.0
    for batch in order.split(32):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(plain(images[batch]), material.train_labels[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    assert found.train_loss == pytest.approx(total / 70, rel=1e-5)
    for ours, theirs in zip(network.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_a_lenet_learns_made_images_within_seconds():
    _, _, training = lenet_training(train=512, epochs=6, test=128)
    evaluations = list(training.epochs())
    assert evaluations[-1].test_accuracy > 0.9
    assert evaluations[-1].val_loss < evaluations[0].val_loss


def test_evaluation_counts_as_by_hand_in_any_batch_size():
    network, material, training = lenet_training()
    found = training.train_epoch(0)
    preparation = made_preparation("range", material.train_images, None, channels_last=False)
    with torch.no_grad():
        scores = network(preparation.as_they_are(material.judged_images))
    predicted, split = scores.argmax(1), material.validation
    labels = material.judged_labels
    assert found.val_accuracy == pytest.approx((predicted[:split] == labels[:split]).float().mean().item())
    assert found.test_accuracy == pytest.approx((predicted[split:] == labels[split:]).float().mean().item())
    loss = torch.nn.functional.cross_entropy(scores[:split], labels[:split])
    assert found.val_loss == pytest.approx(loss.item(), rel=1e-5)
    for name, accuracy in found.class_accuracy.items():
        is_class = labels[split:] == int(name)
        assert accuracy == pytest.approx((predicted[split:][is_class] == int(name)).float().mean().item())
    small = evaluated(network, material, preparation, torch.tensor(found.train_loss), at_once=7)
    assert small.val_loss == pytest.approx(found.val_loss, rel=1e-5)
    assert torch.equal(small.predictions, predicted[split:])


def test_a_class_without_test_images_has_no_accuracy():
    network, material, _ = lenet_training(test=8)
    preparation = made_preparation("range", material.train_images, None, channels_last=False)
    found = evaluated(network, material, preparation, torch.tensor(0.0), at_once=100)
    assert sum(material.class_sizes) == 2
    assert set(found.class_accuracy) == {str(label) for label in material.test_labels.tolist()}


def test_fewer_images_than_a_batch_are_trained_as_one_short_batch():
    network, _, training = lenet_training(train=10, batch=32)
    before = network.dense[0].weight.detach().clone()
    training.train_epoch(0)
    assert not torch.equal(before, network.dense[0].weight)


def test_only_kernels_of_convolutions_decay_in_the_resnets():
    generators = made_generators(factor_seeds(1), "cpu")
    network = made_network("resnet38", 10, generators, "cpu", channels_last=False)
    decaying, others = made_optimizer(RECIPES["resnet38"], network, "cpu").param_groups
    assert {parameter.dim() for parameter in decaying["params"]} == {4}
    assert (decaying["weight_decay"], others["weight_decay"]) == (2e-4, 0.0)
    assert sum(p.numel() for p in (*decaying["params"], *others["params"])) == 565_386


def test_the_learning_rate_is_set_in_every_group_also_where_it_is_a_tensor():
    weight = torch.nn.Parameter(torch.zeros(1))
    plain = torch.optim.SGD([{"params": [weight]}], lr=1.0)
    set_learning_rate(plain, 0.25)
    assert plain.param_groups[0]["lr"] == 0.25
    rate = torch.tensor(1.0)
    on_device = SimpleNamespace(param_groups=[{"lr": rate}])
    set_learning_rate(on_device, 0.25)
    assert rate.item() == 0.25


def test_after_the_warm_up_of_a_capture_nothing_was_trained():
    step, generators = resnet_step()
    batches = made_batches(2, 8, "cpu", with_moves=True)
    state = {name: tensor.clone() for name, tensor in step.network.state_dict().items()}
    before = Snapshot(step, batches, generators.dropout)
    torch.rand(5, generator=generators.dropout)
    step(batches)
    step(batches)
    assert not torch.equal(state["first.weight"], step.network.state_dict()["first.weight"])
    before.restore()
    assert all(torch.equal(state[name], tensor) for name, tensor in step.network.state_dict().items())
    assert not any(value.any() for kept in step.optimizer.state.values() for value in kept.values())
    assert (step.loss_sum.item(), batches.counter.item()) == (0.0, 0)
    fresh = made_generators(factor_seeds(1), "cpu").dropout
    assert torch.equal(torch.rand(3, generator=generators.dropout), torch.rand(3, generator=fresh))


def test_a_restored_training_goes_on_as_a_fresh_one():
    used, generators = resnet_step()
    fresh, _ = resnet_step()
    batches = made_batches(1, 8, "cpu", with_moves=True)
    before = Snapshot(used, batches, generators.dropout)
    used(batches)
    before.restore()
    used(batches)
    other = made_batches(1, 8, "cpu", with_moves=True)
    fresh(other)
    for ours, theirs in zip(used.network.parameters(), fresh.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.skipif(
    torch.cuda.is_available(), reason="a GPU can capture; benchmarks/gpu/zoo_graph_check.py checks that"
)
def test_a_step_that_cannot_be_captured_runs_without_a_graph_and_says_so():
    class Recording(SimpleNamespace):
        def __call__(self, given):
            calls.append(given)

    calls = []
    batches = SimpleNamespace(order=SimpleNamespace(device=torch.device("cuda")), counter=torch.zeros(1))
    step, generators = resnet_step()
    recording = Recording(network=step.network, optimizer=step.optimizer, loss_sum=step.loss_sum)
    runner, note = made_runner(recording, batches, generators.dropout, use_graph=True)
    assert "could not be captured as a CUDA graph" in note
    runner()
    assert calls == [batches]
