"""A search whose space holds no way out, expanded from trial 10 on: a deep sigmoid net with one learning rate."""

import pytest

torch = pytest.importorskip("torch")
optuna = pytest.importorskip("optuna")
datasets = pytest.importorskip("sklearn.datasets")
from torch import nn  # noqa: E402

import isorun  # noqa: E402
import isorun.repair  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)
EPOCHS, TARGET = 3, 0.9


@pytest.fixture(scope="module")
def digits():
    torch.set_num_threads(1)
    images, labels = datasets.load_digits(return_X_y=True)
    images, labels = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return images[order], labels[order]


def objective(digits, expands):
    images, labels = digits

    def train(trial):
        torch.manual_seed(trial.number)
        width, depth = trial.suggest_int("width", 16, 64), trial.suggest_int("depth", 4, 6)
        layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.Sigmoid())]
        model = nn.Sequential(nn.Linear(64, width), nn.Sigmoid(), *layers, nn.Linear(width, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        if expands:
            isorun.repair.expand(trial, model, optimizer, epochs=EPOCHS)
        watcher = isorun.watch(model, every=16)
        for _ in range(EPOCHS):
            model.train()
            for batch in torch.randperm(1200).split(32):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                accuracy = (model(images[1200:]).argmax(1) == labels[1200:]).double().mean().item()
            watcher.mark(loss=loss.item(), val_accuracy=accuracy)
        watcher.stop()
        isorun.repair.note(trial, watcher)
        return accuracy

    return train


def searched(digits, expands, trials, seed):
    inner = optuna.samplers.TPESampler(seed=seed)
    sampler = isorun.repair.optuna(inner, begin=10, seed=seed) if expands else inner
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective(digits, expands), n_trials=trials, callbacks=[stop_when_reached])
    return study


def stop_when_reached(study, trial):
    if trial.value > TARGET:
        study.stop()


@pytest.mark.long
def test_it_gets_nowhere_in_its_own_space_and_out_of_it_when_that_is_expanded(digits):
    alone = searched(digits, False, 12, 1)
    assert alone.best_value < 0.4
    study = searched(digits, True, 80, 1)
    first = [trial.params for trial in study.trials[:10]]
    assert all(value == "keep" for params in first for name, value in params.items() if name.startswith("isorun."))
    own = [{name: one for name, one in params.items() if not name.startswith("isorun.")} for params in first]
    assert own == [trial.params for trial in alone.trials[:10]]
    assert [trial.value for trial in study.trials[:10]] == [trial.value for trial in alone.trials[:10]]
    assert study.best_value > TARGET
