"""Each of the four factors alone, bit by bit, on a CPU."""

import pytest

torch = pytest.importorskip("torch")

from isorun.zoo.data.made import made_images  # noqa: E402
from isorun.zoo.models.resnet import GeneratorDropout, made_wide_resnet  # noqa: E402
from isorun.zoo.studies.ase20.training.images import made_material  # noqa: E402
from isorun.zoo.studies.ase20.training.loop import Course, Training  # noqa: E402
from isorun.zoo.studies.ase20.training.networks import factor_seeds, made_generators  # noqa: E402
from isorun.zoo.studies.ase20.training.recipes import (  # noqa: E402
    FACTORS,
    RECIPES,
)


class Trained:
    """A small wide residual network (it has all four factors) trained for two epochs, and what was drawn for it."""

    def __init__(self, seed, vary):
        material = made_material(made_images("cifar10", train=20, test=8), "cpu")
        generators = made_generators(factor_seeds(seed, 0, vary), "cpu")
        network = made_wide_resnet(10, 1, 10, generators.weights, 0.3)
        for layer in network.modules():
            if isinstance(layer, GeneratorDropout):
                layer.generator = generators.dropout
        self.initial = [tensor.detach().clone() for tensor in network.parameters()]
        course = Course(RECIPES["wrn-28-10"], epochs=2, batch=8, channels_last=True)
        training = Training(course, network, material, generators)
        self.seen = []
        for evaluation in training.epochs():
            self.seen.append((training._full.order.clone(), training._full.moves.clone()))
            self.last = evaluation
        self.final = [tensor.detach().clone() for tensor in network.state_dict().values()]
        self.dropout_state = generators.dropout.get_state()

    def drawn(self, factor):
        if factor == "weights":
            return self.initial
        if factor == "dropout":
            return [self.dropout_state]
        return [epoch[0 if factor == "order" else 1] for epoch in self.seen]


@pytest.fixture(scope="module")
def trained():
    made = {}

    def make(seed, vary):
        if (seed, vary) not in made:
            made[seed, vary] = Trained(seed, vary)
        return made[seed, vary]

    return make


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("varied", FACTORS)
def test_one_factor_varies_alone_and_changes_the_result(trained, varied):
    one, two = trained(1, varied), trained(2, varied)
    for factor in FACTORS:
        assert equal(one.drawn(factor), two.drawn(factor)) is (factor != varied), factor
    assert not equal(one.final, two.final)


def test_all_factors_vary_together(trained):
    one, two = trained(1, "all"), trained(2, "all")
    assert not any(equal(one.drawn(factor), two.drawn(factor)) for factor in FACTORS)


def test_with_no_factor_varied_two_seeds_train_bit_by_bit_the_same(trained):
    one, two = trained(1, "none"), trained(2, "none")
    assert equal(one.final, two.final)
    assert one.last.train_loss == two.last.train_loss


def test_the_same_seed_trains_bit_by_bit_the_same(trained):
    assert equal(trained(1, "all").final, Trained(1, "all").final)


def test_every_epoch_has_its_own_order_and_moves_and_shows_every_image(trained):
    run = trained(1, "all")
    (first_order, first_moves), (second_order, second_moves) = run.seen
    assert not torch.equal(first_order, second_order)
    assert not torch.equal(first_moves, second_moves)
    assert len(set(first_order.flatten().tolist())) == 16  # two batches of 8; the other 4 are the short batch


def test_a_training_draws_nothing_from_the_global_generator():
    before = torch.get_rng_state()
    Trained(3, "all")
    assert torch.equal(before, torch.get_rng_state())
