"""Torch models and optimizers as users have them: kept bit for bit, changed in place, or left alone and said."""

import copy
import random
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import isorun  # noqa: E402
import isorun.repair.expansion  # noqa: E402
from isorun.errors import InputError  # noqa: E402
from isorun.repair import expand  # noqa: E402
from isorun.repair.expansion import OFFERS, STEPS  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Chosen:
    """A trial that answers what it was told to, and keeps the rest."""

    def __init__(self, **answers):
        self.answers, self.params, self.user_attrs = answers, {}, {}

    def suggest_categorical(self, name, choices):
        value = self.answers.get(name.removeprefix("isorun."), "keep")
        assert value in choices
        self.params[name] = value
        return value

    def set_user_attr(self, name, value):
        self.user_attrs[name] = value


def perceptron(activation=nn.Sigmoid):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), activation(), nn.Linear(8, 8), activation(), nn.Linear(8, 3))


class Called(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.second(nn.functional.relu(self.first(x)))


class Block(nn.Module):
    """As torchvision writes it: one ReLU, registered once and called twice, and a shortcut."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + x)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 6), nn.GELU())
        self.gate = nn.Sequential(nn.Linear(6, 6), nn.Sigmoid())
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.body(x) * self.gate(x))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.hidden, self.act = nn.Embedding(6, 4), nn.Linear(4, 4), nn.Tanh()
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.act(self.hidden(self.embedding(x).mean(1))))


def residual():
    torch.manual_seed(0)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)]
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), Block(4), Block(4), *head)


def sgd(model, lr=0.1, **options):
    return torch.optim.SGD(model.parameters(), lr, **options)


def train(model, optimizer, *, epochs=2, steps=3, inputs=lambda: torch.randn(5, 6), ended=lambda: None):
    generator = torch.Generator().manual_seed(3)
    losses = []
    for _ in range(epochs):
        model.train()
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs()), torch.randint(3, (5,), generator=generator))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        ended()
    return losses


def kinds(model):
    return {type(one).__name__ for one in model.modules()}


def test_where_all_is_kept_nothing_differs_by_a_bit_and_no_random_number_is_drawn():
    def trained(expanding):
        model = perceptron()
        optimizer = sgd(model, momentum=0.9)
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)
        if expanding:
            expanded = expand(Chosen(), model, optimizer, epochs=2)
            assert expanded.model is model
            assert tuple(expanded) == (model, optimizer)
        losses = train(model, optimizer)
        hooks = len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks)
        drawn = torch.rand(2).tolist(), random.random(), np.random.rand()
        return losses, [one.tolist() for one in model.state_dict().values()], drawn, hooks, str(model), str(optimizer)

    assert trained(True) == trained(False)


SAME = {("optimizer", "sgd"), ("learning_rate", "1e-1"), ("weight_decay", "0"), ("momentum", "0"), ("clip", "1")}
FROM_SCRATCH = [name for name in OFFERS if name not in ("pretrained", "fine_tuning", *STEPS)]


@pytest.mark.parametrize("name", FROM_SCRATCH)
def test_each_choice_changes_the_training_and_the_loop_stays_as_it_is(name):
    kept = perceptron()
    before = train(kept, sgd(kept), inputs=lambda: 50 + 9 * torch.ones(5, 6))
    for choice in OFFERS[name]:
        model = perceptron()
        optimizer = sgd(model)
        expanded = expand(Chosen(**{name: choice}), model, optimizer, steps=6)
        assert expanded.offered[f"isorun.{name}"] == choice
        after = train(model, optimizer, inputs=lambda: 50 + 9 * torch.ones(5, 6))
        assert (after == before) == ((name, choice) in SAME), choice
        assert np.isfinite(after).all()


def test_activations_between_layers_are_replaced_where_they_hang_and_outputs_stay():
    model = nn.Sequential(perceptron(), nn.Sigmoid())
    expand(Chosen(activation="selu"), model)
    assert [type(one).__name__ for one in model[0]] == ["Linear", "SELU", "Linear", "SELU", "Linear"]
    assert isinstance(model[1], nn.Sigmoid)
    shared = residual()
    expand(Chosen(activation="tanh"), shared)
    assert "ReLU" not in kinds(shared)
    assert isinstance(shared[3].relu, nn.Tanh)
    gated = Gated()
    expand(Chosen(activation="relu"), gated)
    assert isinstance(gated.body[1], nn.ReLU)
    assert isinstance(gated.gate[1], nn.Sigmoid)


def test_what_a_forward_pass_calls_cannot_be_replaced_and_that_is_said():
    trial = Chosen()
    expanded = expand(trial, Called(), None)
    assert expanded.left_out["isorun.activation"].endswith("cannot be replaced: relu in Called")
    assert "isorun.initialiser" in expanded.offered
    assert expanded.left_out["isorun.momentum"] == "no optimizer was given"
    assert trial.user_attrs["isorun:left_out"] == expanded.left_out
    assert "no activation" in expand(Chosen(), nn.Linear(3, 2)).left_out["isorun.activation"]


def test_a_model_that_normalises_is_not_normalised_again_and_new_norms_are_trained():
    assert expand(Chosen(), residual()).left_out["isorun.normalise"] == "the model normalises already"
    model = perceptron()
    optimizer = sgd(model)
    expand(Chosen(normalise="true"), model, optimizer)
    norms = [one for one in model.modules() if isinstance(one, nn.BatchNorm1d)]
    assert len(norms) == 2
    held = {id(one) for group in optimizer.param_groups for one in group["params"]}
    assert {id(one) for one in model.parameters()} == held
    train(model, optimizer)
    assert all(one.weight.detach().std() > 0 for one in norms)
    assert model(torch.randn(1, 6)).isfinite().all()  # one example, in training
    assert model(torch.randn(2, 4, 6)).shape == (2, 4, 3)
    images = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    expanded = expand(Chosen(normalise="true"), images)
    assert "lazy" in expanded.left_out["isorun.initialiser"]
    assert images(torch.randn(2, 1, 5, 5)).shape == (2, 3)
    assert isinstance(images[1].norm, nn.BatchNorm2d)


@pytest.mark.parametrize("first", [nn.Linear(6, 3), nn.Conv2d(2, 3, 1)], ids=["linear", "convolution"])
def test_inputs_are_standardised_by_what_training_has_shown_and_travel_with_the_weights(first):
    model = nn.Sequential(first)
    expand(Chosen(standardise="true"), model)
    seen = []
    first.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    shape = (400, 6) if isinstance(first, nn.Linear) else (400, 2, 3, 3)
    generator = torch.Generator().manual_seed(0)
    scale = torch.arange(1, shape[1] + 1).reshape(1, -1, *(1,) * (len(shape) - 2))
    data = (torch.randn(shape, generator=generator) * 20 + 100) * scale
    for batch in data.split(50):
        model(batch)
    model.eval()
    model(data)
    axes = [place for place in range(len(shape)) if place != 1]
    assert seen[-1].mean(axes).abs().max() < 0.01
    assert (seen[-1].std(axes) - 1).abs().max() < 0.02
    other = copy.deepcopy(model)
    expand(Chosen(standardise="true"), fresh := nn.Sequential(copy.deepcopy(other[0]).__class__(*_shape(first))))
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh.eval()(data), model(data))


def _shape(layer):
    return (6, 3) if isinstance(layer, nn.Linear) else (2, 3, 1)


def test_an_input_that_hardly_varies_stays_a_number():
    model = nn.Sequential(nn.Linear(2, 1))
    expand(Chosen(standardise="true"), model)
    model(torch.tensor([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]))
    seen = []
    model[0].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model.eval()(torch.tensor([[1.0, 6.0]]))
    assert seen[0].abs().max() < 10


def test_an_initialiser_draws_what_it_says_and_leaves_tied_frozen_and_parametrised_weights():
    model = nn.Sequential(nn.Linear(600, 300), nn.ReLU(), nn.Linear(300, 3))
    for name, bound in (("he_uniform", (6 / 600) ** 0.5), ("lecun_uniform", (3 / 600) ** 0.5)):
        expand(Chosen(initialiser=name), model)
        assert float(model[0].weight.detach().abs().max()) == pytest.approx(bound, rel=0.01)
    expand(Chosen(initialiser="glorot_uniform"), model)
    assert float(model[0].weight.detach().abs().max()) == pytest.approx((6 / 900) ** 0.5, rel=0.01)
    assert not model[0].bias.any()
    tied = Tied()
    before = tied.embedding.weight.detach().clone()
    hidden = tied.hidden.weight.detach().clone()
    expand(Chosen(initialiser="he_uniform"), tied)
    assert torch.equal(tied.head.weight, before)
    assert not torch.equal(tied.hidden.weight, hidden)
    parametrised = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)))
    assert "isorun.initialiser" in expand(Chosen(), parametrised).left_out


@pytest.mark.parametrize("wrap", [nn.DataParallel, lambda model: torch.compile(model, backend="eager")])
def test_what_replicates_or_compiles_a_model_is_seen_through(wrap):
    inner = perceptron()
    model = wrap(inner)
    optimizer = sgd(model)
    expanded = expand(Chosen(activation="selu", normalise="true", standardise="true"), model, optimizer, epochs=2)
    assert expanded.model is model
    assert "Sigmoid" not in kinds(inner)
    assert np.isfinite(train(model, optimizer)).all()


def test_a_distributed_or_scripted_model_is_left_alone():
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        scripted = torch.jit.trace(perceptron(), torch.randn(1, 6))
    left = expand(Chosen(), scripted, sgd(scripted)).left_out
    assert left["isorun.activation"] == left["isorun.initialiser"] == "a scripted model cannot be changed"


@pytest.mark.parametrize("kind", ["adam", "adamw", "nadam", "sgd"])
def test_an_optimizer_becomes_another_and_stays_the_same_object(kind):
    model, twin = perceptron(), perceptron()
    optimizer = torch.optim.RMSprop(
        [{"params": model[0].parameters(), "lr": 0.001, "name": "first"}, {"params": model[2].parameters()}], lr=0.01
    )
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append(1))
    expand(Chosen(optimizer=kind), model, optimizer)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    made = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "nadam": torch.optim.NAdam, "sgd": torch.optim.SGD}
    other = made[kind]([{"params": twin[0].parameters(), "lr": 0.001}, {"params": twin[2].parameters()}], lr=0.01)
    torch.manual_seed(5)
    mine = train(model, optimizer, ended=scheduler.step)
    torch.manual_seed(5)
    assert mine == train(twin, other, ended=torch.optim.lr_scheduler.ExponentialLR(other, 0.5).step)
    assert type(optimizer) is made[kind]
    assert len(calls) == 6
    assert [group.get("name") for group in optimizer.param_groups] == ["first", None]
    fresh = made[kind](twin.parameters(), 0.1)
    assert optimizer.state_dict()["state"].keys() == other.state_dict()["state"].keys()
    assert fresh.defaults.keys() == optimizer.defaults.keys()


def test_settings_go_to_every_group_in_proportion():
    model = perceptron()
    groups = [{"params": model[0].parameters(), "lr": 0.01}, {"params": model[2].parameters(), "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(groups, lr=0.1, weight_decay=0.5, nesterov=True, momentum=0.9)
    expand(Chosen(learning_rate="1e-3", weight_decay="1e-2", momentum="0"), model, optimizer)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([1e-4, 1e-3])
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.01, 0.0]
    assert [group["nesterov"] for group in optimizer.param_groups] == [False, False]
    assert np.isfinite(train(model, optimizer)).all()


def test_lbfgs_a_scheduler_a_used_a_fused_and_an_unknown_optimizer_are_not_fought():
    model = perceptron()
    left = expand(Chosen(), model, torch.optim.LBFGS(model.parameters()), epochs=3).left_out
    asked_of_optimizers = {"optimizer", "learning_rate", "momentum", "weight_decay", "clip", "end_learning_rate"}
    assert {f"isorun.{name}" for name in asked_of_optimizers} <= left.keys()
    scheduled = sgd(model)
    torch.optim.lr_scheduler.StepLR(scheduled, 1)
    left = expand(Chosen(), model, scheduled, epochs=3).left_out
    assert (
        left["isorun.learning_rate"] == left["isorun.end_learning_rate"] == "the optimizer has a scheduler of its own"
    )
    assert "scheduler" in left["isorun.optimizer"]
    assert "isorun.momentum" not in left
    used = torch.optim.Adam(model.parameters())
    train(model, used)
    assert expand(Chosen(), model, used).left_out["isorun.optimizer"] == "the optimizer has made steps already"
    assert "momentum" in expand(Chosen(), model, used).left_out["isorun.momentum"]
    fused = torch.optim.Adam(model.parameters(), fused=True)
    assert {"isorun.optimizer", "isorun.clip"} <= expand(Chosen(), model, fused).left_out.keys()

    class Own(torch.optim.SGD):
        pass

    assert expand(Chosen(), model, Own(model.parameters(), 0.1)).left_out["isorun.optimizer"].startswith("Own may do")


def test_the_learning_rate_goes_to_its_end_during_steps_and_a_later_scheduler_sees_its_own():
    model = perceptron()
    optimizer = sgd(model, lr=1.0)
    used = []
    expanded = expand(Chosen(end_learning_rate="0"), model, optimizer, epochs=4)
    optimizer.register_step_pre_hook(lambda one, *_: used.append(one.param_groups[0]["lr"]))
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    seen = []

    def ended():
        expanded.epoch_ended()
        seen.append(optimizer.param_groups[0]["lr"])
        scheduler.step()

    train(model, optimizer, epochs=4, steps=1, ended=ended)
    assert seen == [1.0, 0.5, 0.25, 0.125]
    assert used == pytest.approx([1.0, 0.5 * 0.853553, 0.25 * 0.5, 0.125 * 0.146447], rel=1e-4)


@pytest.mark.parametrize("teller", ["epoch_ended", "log", "evaluation", "both", "steps"])
def test_epochs_are_told_by_whoever_tells_them(teller):
    model = perceptron()
    optimizer = sgd(model)
    length = {"steps": 9} if teller == "steps" else {"epochs": 3}
    expanded = expand(Chosen(end_learning_rate="0"), model, optimizer, **length)
    places = []
    optimizer.register_step_pre_hook(lambda *_: places.append(round(expanded.progress, 3)))
    for epoch in range(3):
        train(model, optimizer, epochs=1)
        model.eval()(torch.randn(2, 6))
        if teller in ("log", "both"):
            isorun.log(epoch=epoch, loss=0.5)
            isorun.log(epoch=epoch, accuracy=0.5)
        if teller in ("epoch_ended", "both"):
            expanded.epoch_ended()
    steps = [round(number / 9, 3) for number in range(9)]
    assert places == (steps if teller == "steps" else [0.0] * 3 + [0.333] * 3 + [0.667] * 3)


def test_epochs_that_another_thread_logs_for_its_own_trial_do_not_move_this_one():
    """As Optuna runs trials with n_jobs: a learning rate would fall twice as fast."""
    model, other = perceptron(), perceptron()
    expanded = expand(Chosen(end_learning_rate="0"), model, sgd(model), epochs=4)
    seen = []

    def trial():
        seen.append(expand(Chosen(end_learning_rate="0"), other, sgd(other), epochs=4))
        isorun.log(epoch=7, loss=0.5)

    thread = threading.Thread(target=trial)
    thread.start()
    thread.join()
    isorun.log(epoch=0, loss=0.5)
    isorun.log(epoch=1, loss=0.5)
    assert (expanded.progress, seen[0].progress) == (0.5, 0.25)


@pytest.mark.parametrize("closure", [False, True])
def test_gradients_are_clipped_also_where_a_closure_computes_them(closure):
    model = perceptron(nn.ReLU)
    optimizer = sgd(model)
    expand(Chosen(clip="1e-1"), model, optimizer)
    before = [one.detach().clone() for one in model.parameters()]

    def computed():
        optimizer.zero_grad()
        loss = 1000 * model(torch.randn(5, 6)).square().sum()
        loss.backward()
        return loss

    if closure:
        optimizer.step(computed)
    else:
        computed()
        optimizer.step()
    moved = sum((one - old).square().sum() for one, old in zip(model.parameters(), before, strict=True)) ** 0.5
    assert moved.item() == pytest.approx(0.1 * 0.1, rel=1e-3)


def test_pretrained_weights_are_loaded_only_where_that_was_chosen():
    given = {**perceptron().state_dict(), "4.weight": torch.zeros(10, 8), "extra": torch.zeros(1)}
    torch.manual_seed(7)
    model = nn.Sequential(*(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)))
    before = model[0].weight.detach().clone()
    assert "isorun.pretrained" in expand(Chosen(), model).left_out
    expanded = expand(Chosen(), model, sgd(model), epochs=3, pretrained=given)
    assert torch.equal(model[0].weight, before)
    assert expanded.left_out["isorun.fine_tuning"] == "the weights are not pretrained"
    expanded = expand(Chosen(pretrained="given"), model, sgd(model), epochs=3, pretrained=given)
    assert torch.equal(model[0].weight, given["0.weight"])
    assert "isorun.fine_tuning" in expanded.offered
    assert expanded.left_out["isorun.initialiser"] == "it would undo the pretrained weights"
    loaded = []
    expand(Chosen(pretrained="given"), model, pretrained=loaded.append)
    assert loaded == [model]
    with pytest.raises(InputError, match="none of the pretrained weights fits"):
        expand(Chosen(pretrained="given"), model, pretrained={"other": torch.zeros(1)})


@pytest.mark.parametrize(
    ("choices", "frozen"),
    [
        ({"fine_tuning": "two-step", "step_ratio": "0.5"}, [9, 9, 0, 0]),
        ({"fine_tuning": "three-step", "step_ratio": "0.2"}, [9, 4, 4, 0]),
        ({"fine_tuning": "two-step", "freeze": "none"}, [0, 0, 0, 0]),
        ({"fine_tuning": "two-step", "freeze": "batch-norm", "step_ratio": "0.5"}, [9, 9, 6, 6]),
    ],
)
def test_fine_tuning_freezes_step_by_step_and_leaves_what_the_user_froze(choices, frozen):
    model = residual()[:5].append(nn.Flatten()).append(nn.Linear(100, 3))
    model[4] = nn.Identity()
    model[0].bias.requires_grad_(False)
    optimizer = sgd(model)
    expanded = expand(Chosen(**choices), model, optimizer, epochs=4, pretrained=True)
    seen, used = [], []
    optimizer.register_step_pre_hook(lambda one, *_: used.append(one.param_groups[0]["lr"]))
    for _ in range(4):
        seen.append(sum(not one.requires_grad for one in model.parameters()) - 1)
        train(model, optimizer, epochs=1, inputs=lambda: torch.randn(5, 1, 5, 5))
        expanded.epoch_ended()
    assert seen == frozen
    assert not model[0].bias.requires_grad
    norm = model[1]
    norm.train()
    model.train()(torch.randn(5, 1, 5, 5))
    assert norm.training == (choices.get("freeze") != "batch-norm")
    assert used[-1] == pytest.approx(0.01)


def test_mixed_precision_goes_on_as_it_did():
    model = perceptron()
    optimizer = sgd(model)
    expand(Chosen(activation="selu", normalise="true", standardise="true", clip="1"), model, optimizer)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(torch.randn(5, 6)), torch.randint(3, (5,)))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert all(one.isfinite().all() for one in model.parameters())
    assert scaler.get_scale() > 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expand(Chosen(), "model"), "expand changes a model"),
        (lambda: expand({"lr": 1}, perceptron()), "asks a trial"),
        (lambda: expand(Chosen(), perceptron(), epochs=0), "epochs is not understood"),
        (lambda: expand(Chosen(), perceptron(), steps=2.5), "steps is not understood"),
        (lambda: expand(Chosen(), perceptron(), pretrained="weights.pt"), "pretrained is not understood"),
    ],
)
def test_mistakes_are_said(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_lightning_module_is_expanded_when_its_training_begins():
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = perceptron()

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return sgd(self)

    def trained(callbacks):
        torch.manual_seed(0)
        data = torch.utils.data.TensorDataset(torch.randn(32, 6), torch.randint(3, (32,)))
        off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
        options = {"max_epochs": 2, "accelerator": "cpu", **dict.fromkeys(off, False)}
        trainer, module = lightning.Trainer(callbacks=callbacks, **options), Module()
        trainer.fit(module, torch.utils.data.DataLoader(data, 8))
        return module, trainer

    plain, _ = trained([])
    kept, _ = trained([isorun.repair.expansion.lightning(Chosen())])
    assert all(torch.equal(one, other) for one, other in zip(plain.parameters(), kept.parameters(), strict=True))
    callback = isorun.repair.expansion.lightning(Chosen(activation="selu", optimizer="adam", end_learning_rate="0"))
    changed, trainer = trained([callback])
    assert "SELU" in kinds(changed)
    assert isinstance(trainer.optimizers[0], torch.optim.Adam)
    assert callback.expanded.progress == 1.0


@pytest.mark.parametrize(
    ("made", "activation", "as_built"),
    [
        (
            torch.optim.Adam,
            nn.ReLU(),
            {"activation": "relu", "optimizer": "adam", "learning_rate": "1e-3", "weight_decay": "0"},
        ),
        (
            lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, weight_decay=3e-3),
            nn.LeakyReLU(0.3),
            {"optimizer": "sgd", "learning_rate": "1e-1", "momentum": "0.9"},
        ),
    ],
)
def test_it_is_known_which_choices_are_what_the_user_built(made, activation, as_built):
    model = nn.Sequential(nn.Linear(4, 8), activation, nn.Linear(8, 2))
    trial = Chosen()
    expand(trial, model, made(model.parameters()), epochs=2)
    assert trial.user_attrs["isorun:as_built"] == {f"isorun.{name}": word for name, word in as_built.items()}
