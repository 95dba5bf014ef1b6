"""Watching trainings with torch: what rows hold, that nothing changes or breaks, and that the budget is kept."""

import copy
import gc
import importlib
import io
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref

import pytest

import isorun
from isorun.diagnose import Trace, examine
from isorun.worker import watching
from isorun.worker.watching import Watcher

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    for watcher in tuple(watching._watchers):
        watcher.stop()


def data(size=256, width=8):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size, width, generator=generator)
    return x, x[:, :4].argmax(1)


def small(last=()):
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 4), *last)


def train(model, *, steps=20, every=2, optimizer=None, loss=nn.functional.cross_entropy, inputs=None, marks=0):
    x, y = data()
    x = x if inputs is None else inputs
    optimizer = optimizer or torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    watcher = isorun.watch(model, every=every)
    for step in range(steps):
        optimizer.zero_grad()
        value = loss(model(x[:32]), y[:32])
        value.backward()
        optimizer.step()
        if marks and (step + 1) % marks == 0:
            isorun.log(epoch=step // marks, train_loss=value.detach(), acc=0.5)
    watcher.stop()
    return watcher


def samples(watcher):
    assert watcher.problem == ""
    return [row for row in watcher.rows if row.get("layers")]


def test_a_row_holds_what_the_design_says():
    watcher = train(small(), marks=5)
    first = samples(watcher)[0]
    assert first["layers"] == ["0", "2", "4"]
    for column in ("gradient", "weight", "update", "zero"):
        assert len(first[column]) == 3
    assert first["finite"] is True
    assert set(first["inputs"]) == {"mean", "spread", "least", "largest"}
    assert first["dead"].keys() == {"relu 1"}
    assert first["saturated"].keys() == {"tanh 2"}
    assert first["output"] == {"looks": "numbers", "width": 4, "loss": "cross-entropy-of-logits"}
    marked = [row for row in watcher.rows if "loss" in row]
    assert [row["epoch"] for row in marked] == [0, 1, 2, 3]
    assert marked[0]["accuracy"] == 0.5
    json.dumps(watcher.rows)


def test_the_numbers_are_those_of_the_gradients():
    model, (x, y) = small(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model[0].weight.detach().clone()
    watcher = isorun.watch(model, every=1)
    nn.functional.cross_entropy(model(x), y).backward()
    expected = model[0].weight.grad.norm().item()
    optimizer.step()
    watcher.stop()
    found = samples(watcher)[0]
    assert found["gradient"][0] == pytest.approx(expected, rel=1e-3)
    assert found["weight"][0] == pytest.approx(before.norm().item(), rel=1e-3)
    assert found["update"][0] == pytest.approx(0.1 * expected / before.norm().item(), rel=1e-3)
    assert found["inputs"]["spread"] == pytest.approx(x.std(unbiased=False).item(), rel=1e-3)


def test_the_training_computes_the_same_bits():
    def weights(watched):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm1d(16), nn.Linear(16, 4))
        if watched:
            samples(train(model, every=1))
        else:
            x, y = data()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(20):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x[:32]), y[:32]).backward()
                optimizer.step()
        return [*model.state_dict().values(), torch.rand(1)]

    assert all(torch.equal(one, other) for one, other in zip(weights(True), weights(False), strict=True))


LOSSES = {
    "softmax": (nn.Softmax(1), nn.functional.cross_entropy, "probabilities", "cross-entropy-of-logits"),
    "log softmax": (
        nn.LogSoftmax(1),
        nn.functional.nll_loss,
        "log-probabilities",
        "log-likelihood-of-log-probabilities",
    ),
    "no log": (nn.Softmax(1), nn.functional.nll_loss, "probabilities", "log-likelihood-of-log-probabilities"),
    "own log": (
        nn.Softmax(1),
        lambda out, y: nn.functional.nll_loss(torch.log(out), y),
        "probabilities",
        "log-likelihood-of-probabilities",
    ),
    "relu": (nn.ReLU(), nn.functional.cross_entropy, "rectified", "cross-entropy-of-logits"),
    "squares": (
        nn.Softmax(1),
        lambda out, y: nn.functional.mse_loss(out, nn.functional.one_hot(y, 4).float()),
        "probabilities",
        "squares-of-classes",
    ),
    "double sigmoid": (
        nn.Sigmoid(),
        lambda out, y: nn.functional.binary_cross_entropy_with_logits(out, nn.functional.one_hot(y, 4).float()),
        "sigmoid",
        "binary-cross-entropy-of-logits",
    ),
    "sigmoid": (
        nn.Sigmoid(),
        lambda out, y: nn.functional.binary_cross_entropy(out, nn.functional.one_hot(y, 4).float()),
        "sigmoid",
        "binary-cross-entropy-of-probabilities",
    ),
    "regression": (nn.Identity(), lambda out, y: ((out - y[:, None]) ** 2).mean(), "numbers", ""),
}


@pytest.mark.parametrize("name", LOSSES)
def test_output_and_loss_are_told_from_values(name):
    last, loss, looks, told = LOSSES[name]
    found = samples(train(small([last]), loss=loss))[0]["output"]
    assert (found["looks"], found["loss"]) == (looks, told)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.b(torch.sigmoid(nn.functional.relu(self.a(x))))


def test_functions_that_no_module_calls_are_seen():
    found = samples(train(Functional()))[0]
    assert found["dead"].keys() == {"relu 1"}
    assert found["saturated"].keys() == {"sigmoid 2"}


def test_a_dead_network_is_seen_dead():
    model = small()
    nn.init.constant_(model[0].bias, -100.0)
    assert samples(train(model))[0]["dead"] == {"relu 1": 1.0}


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.other = nn.Linear(8, 8), nn.Linear(8, 4)
        self.same = self.first

    def forward(self, x):
        return self.other(self.same(self.first(x)))


class Words(nn.Module):
    def __init__(self, sparse=False):
        super().__init__()
        self.words, self.cells, self.head = (
            nn.Embedding(50, 8, sparse=sparse),
            nn.LSTM(8, 8, batch_first=True),
            nn.Linear(8, 4),
        )

    def forward(self, x):
        return self.head(self.cells(self.words(x))[0][:, -1])


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 4, dtype=torch.complex64))

    def forward(self, x):
        return (x.to(torch.complex64) @ self.weight).abs()


class Raising(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return {"scores": self.layer(x), "nothing": None}


def frozen():
    model = small()
    model[0].requires_grad_(requires_grad=False)
    return model


ODD = {
    "shared weights": (Shared, {}),
    "frozen layers": (frozen, {}),
    "complex weights": (Complex, {}),
    "many layers": (lambda: nn.Sequential(*[nn.Linear(8, 8) for _ in range(150)], nn.Linear(8, 4)), {}),
    "half precision": (lambda: small().to(torch.bfloat16), {"inputs": data()[0].to(torch.bfloat16)}),
    "data parallel": (lambda: nn.DataParallel(small()), {}),
    "a dictionary as output": (Raising, {"loss": lambda out, y: nn.functional.cross_entropy(out["scores"], y)}),
    "words": (Words, {"inputs": torch.randint(0, 50, (256, 6))}),
    "scripted": (lambda: torch.jit.trace(small(), data()[0][:32]), {}),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ODD)
def test_odd_models_are_watched_without_harm(name):
    build, options = ODD[name]
    watcher = train(build(), **options)
    assert watcher.problem == ""
    assert samples(watcher)
    assert all(len(row["layers"]) <= watching.MAX_LAYERS for row in samples(watcher))


def test_sparse_gradients_and_lookups_are_measured():
    model = Words(sparse=True)
    parameters = [*model.cells.parameters(), *model.head.parameters()]
    optimizers = [torch.optim.SparseAdam(model.words.parameters()), torch.optim.Adam(parameters)]
    watcher = isorun.watch(model, every=1)
    x, y = torch.randint(0, 50, (32, 6)), data()[1][:32]
    for _ in range(4):
        for optimizer in optimizers:
            optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
    watcher.stop()
    found = samples(watcher)[0]
    assert found["gradient"][0] > 0
    assert math.isnan(found["zero"][0])


def test_a_model_without_parameters_and_what_is_no_model_do_no_harm():
    assert isorun.watch(nn.Sequential(nn.ReLU())).problem == ""
    assert "allowed" in isorun.watch("a model").problem
    assert "allowed" in isorun.watch(None).problem


def test_another_model_s_optimizer_is_not_counted():
    mine, other = small(), small()
    watcher = isorun.watch(mine, every=1)
    x, y = data()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (mine, other)]
    for _ in range(3):
        for model, optimizer in zip((mine, other), optimizers, strict=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert watcher.step == 3


def test_an_optimizer_in_the_place_of_one_that_is_gone_is_not_taken_for_it():
    """A model is trained in turns with others, each time by a new optimizer: ids come again."""
    model, other, (x, y) = small(), small(), data()
    watcher = isorun.watch(model, every=1)
    seen = []
    for turn in range(20):
        one = model if turn % 2 else other
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        nn.functional.cross_entropy(one(x), y).backward()
        optimizer.step()
        seen.append(id(optimizer))
        del optimizer
    watcher.stop()
    assert len(set(seen)) < len(seen)
    assert watcher.step == 10


def test_trainings_in_many_threads_are_watched_without_harm():
    """As Optuna runs trials with n_jobs: hooks that come and go in one thread end no step in another."""
    found = []

    def trial():
        found.extend(train(small(), steps=6, every=1).step for _ in range(8))

    threads = [threading.Thread(target=trial) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [6] * 32
    train(small())  # the hook goes with the last watcher, where no other thread is left
    assert not importlib.import_module("torch.optim.optimizer")._global_optimizer_pre_hooks


def told(watcher):
    return [(row["epoch"], row["loss"]) for row in watcher.rows if "loss" in row]


def test_an_epoch_is_told_of_the_models_that_its_thread_trains():
    """As Optuna runs trials with n_jobs: the epochs of one trial are none of the other's."""
    turn, seen = threading.Barrier(2), {}

    def trial(number):
        model, (x, y) = small(), data()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with isorun.watch(model, every=1) as seen[number]:
            for epoch in range(3):
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                turn.wait(10)
                isorun.log(epoch=epoch, loss=10 * number + epoch)
                turn.wait(10)

    threads = [threading.Thread(target=trial, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told(seen[0]) == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert told(seen[1]) == [(0, 10.0), (1, 11.0), (2, 12.0)]


def test_an_epoch_told_by_a_thread_that_trains_nothing_is_that_of_the_one_that_trains():
    model, (x, y) = small(), data()
    watcher = isorun.watch(model, every=1)
    training = threading.Thread(target=lambda: train_once(model, x, y))
    training.start()
    training.join()
    isorun.log(epoch=0, loss=0.5)
    watcher.stop()
    assert told(watcher) == [(0, 0.5)]


def train_once(model, x, y):
    nn.functional.cross_entropy(model(x), y).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


def test_a_model_that_is_trained_and_kept_has_no_epochs_of_the_next_one():
    kept, model, (x, y) = small(), small(), data()
    first = isorun.watch(kept, every=1)
    train_once(kept, x, y)
    isorun.log(epoch=0, loss=1.0)
    second = isorun.watch(model, every=1)
    train_once(model, x, y)
    isorun.log(epoch=0, loss=2.0)
    isorun.log(epoch=0, val_loss=3.0)
    first.stop(), second.stop()
    assert told(first) == [(0, 1.0)]
    assert "val_loss" not in first.rows[-1]
    assert told(second) == [(0, 2.0)]
    assert second.rows[-1]["val_loss"] == 3.0


def test_a_watcher_that_is_kept_with_a_model_is_copied_and_saved_with_it():
    model, (x, y) = small(), data()
    model.watcher = isorun.watch(model, every=1)
    nn.functional.cross_entropy(model(x), y).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    for kept in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert kept.watcher.step == 1
        kept.watcher.stop()  # it watches nothing
    model.watcher.stop()
    assert samples(model.watcher)


def test_gradients_that_are_summed_over_batches_make_one_sample():
    model, (x, y) = small(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = isorun.watch(model, every=1)
    for _ in range(3):
        optimizer.zero_grad()
        for part in range(4):
            nn.functional.cross_entropy(model(x[part * 32 : part * 32 + 32]), y[part * 32 : part * 32 + 32]).backward()
        optimizer.step()
    watcher.stop()
    assert watcher.step == 3
    assert all(set(row["dead"]) == {"relu 1"} for row in samples(watcher))


def test_a_scaler_and_autocast_do_no_harm():
    model, (x, y) = small(), data()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    watcher = isorun.watch(model, every=1)
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x[:32]), y[:32])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    watcher.stop()
    assert samples(watcher)


def test_an_output_whose_attributes_are_its_items_is_looked_at():
    class Items(dict):
        __getattr__ = dict.__getitem__  # hasattr raises KeyError

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small()

        def forward(self, x):
            return Items(loss=x.sum(), logits=self.inner(x))

    watcher = train(Model(), loss=lambda given, y: nn.functional.cross_entropy(given.logits, y))
    assert watcher.problem == ""
    assert samples(watcher)[0]["output"]["loss"] == "cross-entropy-of-logits"


def test_a_watcher_that_is_asked_before_it_is_stopped_tells_the_last_epoch_too():
    watcher = Watcher()
    for epoch in range(3):
        watcher.mark(epoch, loss=1.0 - epoch / 10)
    assert told(watcher) == [(0, 1.0), (1, 0.9), (2, 0.8)]
    watcher.mark(2, val_loss=0.7)
    watcher.stop()
    assert len(watcher.rows) == 3
    assert watcher.rows[-1]["val_loss"] == 0.7


def test_the_doctor_says_that_watching_ended_and_why():
    watcher = Watcher()
    watcher.guarded("sampling a step", lambda: 1 / 0)
    for epoch in range(3):
        watcher.mark(epoch, loss=1.0)
    said = isorun.doctor(watcher).to_json()
    assert "watching it ended early (sampling a step: ZeroDivisionError: division by zero)" in str(said)
    assert "it was not watched" not in str(said)


def test_a_forward_pass_that_raises_is_the_training_s_own_error():
    model = small()
    watcher = isorun.watch(model, every=1)
    with pytest.raises(RuntimeError, match="shapes"):
        model(torch.zeros(3, 5))
    assert not torch.overrides._get_current_function_mode_stack()
    samples(train(model))
    assert watcher.problem == ""


def test_a_watcher_that_fails_says_so_and_lets_the_training_go_on(monkeypatch):
    from isorun.worker.frameworks.probes import pytorch

    def broken(*_):
        raise RuntimeError("on purpose")

    monkeypatch.setattr(pytorch, "_layers", broken)
    watcher = train(small())
    assert "on purpose" in watcher.problem
    assert not watcher.rows


def test_two_watchers_of_one_model_that_fail_and_end_do_not_disturb_the_optimizer(monkeypatch):
    from isorun.worker.frameworks.probes import pytorch

    model, (x, y) = small(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = isorun.watch(model, every=1), isorun.watch(model, every=2)
    for step in range(6):
        if step == 3:
            monkeypatch.setattr(pytorch, "_layers", lambda *_: 1 / 0)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert "ZeroDivisionError" in first.problem
    assert "ZeroDivisionError" in second.problem


@pytest.mark.long
def test_a_model_that_is_dropped_takes_its_watcher_with_it():
    model = small()
    gone = weakref.ref(model)
    isorun.watch(model, every=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    del model, optimizer
    gc.collect()
    assert gone() is None
    assert not watching._watchers


def test_hooks_are_gone_between_samples_and_after_the_end():
    model = small()
    watcher = isorun.watch(model, every=1000)
    x, y = data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert not importlib.import_module("torch.nn.modules.module")._has_any_global_hook()
    watcher.stop()
    hooks = importlib.import_module("torch.optim.optimizer")._global_optimizer_pre_hooks
    assert not hooks


def used_in_every_way(model, example):
    """All that people do with a model between two steps; jit.trace checks what it traced by itself."""
    copy.deepcopy(model)
    torch.optim.swa_utils.AveragedModel(model)
    torch.jit.script(model)
    torch.jit.trace(model, example)
    saved = io.BytesIO()
    torch.save(model, saved)
    assert b"isorun" not in saved.getvalue()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    return saved.getvalue()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("every", [1, 3, None])
def test_a_watched_model_is_copied_saved_scripted_and_traced_at_every_step(every):
    model, (x, y) = small(), data()
    watcher = isorun.watch(model, every=every)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        used_in_every_way(model, x[:4])
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(model(x[:32]), y[:32])
        used_in_every_way(model, x[:4])
        value.backward()
        optimizer.step()
    used_in_every_way(model, x[:4])
    watcher.stop()
    assert samples(watcher)
    assert all(row["output"]["width"] == 4 for row in samples(watcher) if "output" in row)
    assert sum("output" in row for row in watcher.rows) >= 1


@pytest.mark.slow
def test_a_model_saved_while_it_is_watched_loads_where_no_isorun_is(tmp_path):
    model = small()
    isorun.watch(model)
    torch.save(model, tmp_path / "model.pt")
    code = "import sys; sys.modules['isorun'] = None; import torch; print(torch.load('model.pt', weights_only=False))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Sequential("), done.stderr


def test_inputs_given_by_name_are_seen_and_other_modules_are_not():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small()

        def forward(self, *, x):
            return self.inner(x)

    model, other, (x, y) = Named(), small(), data()
    watcher = isorun.watch(model, every=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other(1000 * x)
    nn.functional.cross_entropy(model(x=x), y).backward()
    optimizer.step()
    watcher.stop()
    (found,) = samples(watcher)
    assert found["inputs"]["spread"] == pytest.approx(x.std(unbiased=False).item(), rel=1e-3)
    assert list(found["dead"]) == ["relu 1"]


@pytest.mark.long
def test_hooks_of_a_model_that_is_dropped_are_gone_when_a_module_is_called_next():
    modules = importlib.import_module("torch.nn.modules.module")
    model = small()
    isorun.watch(model)
    assert modules._has_any_global_hook()
    del model
    gc.collect()
    nn.Linear(2, 2)(torch.zeros(1, 2))
    assert not modules._has_any_global_hook()
    assert not modules._global_forward_hooks_with_kwargs


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_code_that_is_compiled_while_a_model_is_watched_has_no_hooks_in_it():
    counters = importlib.import_module("torch._dynamo.utils").counters
    other, x, before = nn.Linear(8, 4), data()[0], counters["stats"]["unique_graphs"]
    compiled = torch.compile(lambda given: other(given).sum(), backend="eager", fullgraph=True)
    for _ in range(4):
        model = small()
        watcher = isorun.watch(model)
        compiled(x)  # with a break in it this raises
        watcher.stop()
        compiled(x)
    assert counters["stats"]["unique_graphs"] <= before + 2  # one with the hooks up and one without


@pytest.mark.slow
def test_a_step_that_is_compiled_around_a_watched_model_is_not_compiled_for_each_sample():
    counters = importlib.import_module("torch._dynamo.utils").counters
    model, (x, y), before = small(), data(), counters["stats"]["unique_graphs"]
    loss = nn.CrossEntropyLoss()
    compiled = torch.compile(lambda: loss(model(x), y).backward(), backend="eager")
    watcher, optimizer = isorun.watch(model, every=1), torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(24):
        optimizer.zero_grad()
        compiled()
        optimizer.step()
    watcher.stop()
    assert samples(watcher)
    assert counters["stats"]["unique_graphs"] <= before + 2 * 2  # with the hooks up and without, cut at the backward


def test_a_copied_lightning_module_has_its_class_s_own_hook():
    model, calls = TellingModule(), []
    watcher = isorun.watch(model)
    model.told = calls
    copied = copy.deepcopy(model)
    loaded = pickle.loads(pickle.dumps(model))
    for one in (copied, loaded):
        one.on_train_epoch_end()
        assert one.told == ["ended"]
    assert calls == []
    assert watcher.rows == []
    model.on_train_epoch_end()
    assert calls == ["ended"]
    assert len(watcher.rows) == 1


class TellingModule(nn.Linear):
    """As Lightning's modules are, as far as a watcher looks."""

    current_epoch = 0

    def __init__(self):
        super().__init__(2, 2)

    def training_step(self):
        pass

    def on_train_epoch_end(self):
        self.told.append("ended")


def test_a_forked_child_trains_on():
    model = small()
    isorun.watch(model, every=1)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if train(small(), steps=3).problem == "" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_samples_stay_within_the_share_and_the_allowance(monkeypatch):
    """With a clock of our own: a step takes 1 ms, a sample 2 ms; over 100 s no more than 0.1 % and the allowance."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: 2 * now[0])  # somebody else has the machine half of the time
    monkeypatch.setattr(time, "process_time", lambda: now[0])
    watcher = Watcher()
    taken = 0
    for _ in range(100_000):
        now[0] += 0.001
        watcher.step += 1
        if watcher.step >= watcher.due:
            taken += 1
            watcher.sampled({"layers": ["a"]}, 0.002)
        if watcher.step % 1000 == 0:
            watcher.mark(watcher.step // 1000, loss=1.0)
    assert 20 <= taken <= 50
    assert watcher.spent <= max(watching.ALLOWANCE_SECONDS, 0.001 * now[0]) * 1.05


def test_a_sample_that_is_on_its_way_is_read_when_it_is_there_and_waited_for_at_the_end(monkeypatch):
    """As on a GPU, which is behind: what is asked for at one step is there some steps later."""
    from isorun.worker.frameworks.probes import pytorch

    asked, waited = [], []

    class Late(pytorch.DeviceReading):
        def is_there(self):
            asked.append(self)
            return len(asked) % 3 == 0

        def numbers(self):
            waited.append(self)
            return super().numbers()

    there = train(small(), every=4, marks=5)
    monkeypatch.setattr(pytorch, "DeviceReading", Late)
    torch.manual_seed(0)
    late = train(small(), every=4, marks=5)
    assert len(waited) == 10, "five samples and five updates, each read once"
    assert len(samples(late)) >= 4
    assert {row["step"] for row in samples(late)} <= {row["step"] for row in samples(there)} | {1, 5, 9, 13, 17}
    assert all(len(row["gradient"]) == 3 for row in samples(late))
    assert any("update" in row for row in samples(late))


def test_rows_are_bounded_however_long_the_training_is():
    watcher = Watcher()
    for epoch in range(5000):
        watcher.sampled({"layers": ["a"], "finite": True}, 0.0)
        watcher.mark(epoch, loss=1.0)
    assert len(watcher.rows) <= watching.MAX_ROWS + 1
    assert watcher.rows[0]["epoch"] in (None, 0)


def test_more_metrics_of_one_epoch_join_its_row():
    watcher = Watcher()
    watcher.mark(1, loss=0.5)
    watcher.mark(1, val_acc=0.9)
    watcher.mark(2, loss=float("nan"))
    watcher.mark(3, loss="no number")
    watcher.stop()
    assert watcher.rows[0]["loss"] == 0.5
    assert watcher.rows[0]["val_accuracy"] == 0.9
    assert math.isnan(watcher.rows[1]["loss"])
    assert "loss" not in watcher.rows[2]


def test_without_marks_there_are_rows_all_the_same():
    watcher = train(small(), steps=60)
    assert 5 <= len(samples(watcher)) <= 30


REAL = {
    "wrong-loss": (lambda: small([nn.Softmax(1)]), 0.1),
    "vanishing-gradient": (
        lambda: nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(8, 8), nn.Sigmoid())], nn.Linear(8, 4)),
        0.1,
    ),
    "": (small, 0.05),
}


@pytest.mark.parametrize("fault", REAL)
def test_a_real_training_with_a_fault_is_found_and_a_healthy_one_is_not(fault):
    build, lr = REAL[fault]
    torch.manual_seed(0)
    model, (x, y) = build(), data(512)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    with isorun.watch(model) as watcher:
        for epoch in range(10):
            total = hits = 0.0
            for start in range(0, 512, 32):
                optimizer.zero_grad()
                output = model(x[start : start + 32])
                loss = nn.functional.cross_entropy(output, y[start : start + 32])
                loss.backward()
                optimizer.step()
                total += loss.item() / 16
                hits += (output.argmax(1) == y[start : start + 32]).float().mean().item() / 16
            watcher.mark(epoch, loss=total, accuracy=hits)
    found = [problem.kind for problem in examine(Trace.of_rows(watcher.rows)).problems]
    assert (fault in found) if fault else not found


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the environment of the tests")
@pytest.mark.long
def test_a_watched_run_has_its_rows_in_the_record_and_the_doctor_reads_them(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(
        "import torch, isorun\nfrom torch import nn\n"
        "model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(1))\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "x = torch.randn(64, 8); y = x[:, :4].argmax(1)\n"
        "isorun.watch(model)\n"
        "for epoch in range(5):\n"
        "    optimizer.zero_grad(); loss = nn.functional.cross_entropy(model(x), y)\n"
        "    loss.backward(); optimizer.step()\n"
        "    isorun.log(epoch=epoch, loss=loss)\n"
    )
    monkeypatch.chdir(tmp_path)
    from isorun.cli.main import main

    command = ["run", "-n", "1", "--name", "watched", "--", sys.executable, "train.py"]
    assert main(command) == 0
    (record,) = isorun.records("watched")
    assert record.watched[0]["output"]["looks"] == "probabilities"
    assert not [note for note in record.notes if note.code in {"watch-ended", "unknown-event"}]
    assert main(["doctor", "watched"]) == 3
    assert main(["doctor", record.run_id, "--json"]) == 3
    assert main(["doctor", "0000000000000000-1"]) == 1
    found = isorun.doctor("watched")
    assert "wrong-loss" in str(found)
    assert found.to_json()["problems"][0]["run"] == record.run_id


LIGHTNING = """
import sys
import isorun, lightning, torch
from torch import nn

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        self.log("val_acc", (self.net(batch[0]).argmax(1) == batch[1]).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

x = torch.randn(512, 8)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, :4].argmax(1)), 32)
model = Classifier()
watcher = isorun.watch(model, every=4)
quiet = dict(enable_progress_bar=False, enable_model_summary=False, logger=False, enable_checkpointing=False)
processes = int(sys.argv[1])
strategy = "ddp" if processes > 1 else "auto"
trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", devices=processes, strategy=strategy, **quiet)
trainer.fit(model, loader, loader)
watcher.stop()
assert watcher.problem == "", watcher.problem
assert [row["epoch"] for row in watcher.rows] == [0, 1, 2], watcher.rows
assert all(len(row["gradient"]) == 2 and row["loss"] > 0 and row["val_accuracy"] > 0 for row in watcher.rows)
isorun.log(accuracy=watcher.rows[-1]["val_accuracy"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_lightning_training_tells_its_epochs_also_where_two_processes_train(tmp_path, monkeypatch, processes):
    pytest.importorskip("lightning")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(LIGHTNING)
    study = isorun.Study("lightning", approaches={"trained": [sys.executable, "train.py", str(processes)]}, repeats=1)
    (record,) = isorun.run(study).records
    assert record.state == "finished", record.log_tail
    assert [row["epoch"] for row in record.watched] == [0, 1, 2]
