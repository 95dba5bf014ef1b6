"""python optuna_runs.py FOLDER: the known runs as trials, one pruned, one failed, in a database and a journal."""

import os
import sys

import known_runs as known
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

os.chdir(sys.argv[1])
optuna.logging.set_verbosity(optuna.logging.ERROR)
for storage in ("sqlite:///s.db", JournalStorage(JournalFileBackend("journal.log"))):
    study = optuna.create_study(study_name=known.EXPERIMENT, storage=storage, direction="maximize")
    for model, seed in known.RUNS:
        study.enqueue_trial(known.params(model, seed))

    def objective(trial):
        model = trial.suggest_categorical("model", ["cnn", "mlp"])
        seed = trial.suggest_int("seed", 1, 9)
        trial.suggest_float("lr", 1e-3, 1.0, log=True)
        trial.suggest_categorical("note", ["α and β", None])
        trial.set_user_attr("team", "vision")
        if trial.number == 5:
            raise RuntimeError
        for epoch, row in enumerate(known.rows(model, seed)):
            trial.report(row["val_acc"], epoch)
        if trial.number == 4:
            raise optuna.TrialPruned
        return known.test_acc(model, seed)

    study.optimize(objective, n_trials=6, catch=(RuntimeError,))
    two = optuna.create_study(study_name="two", storage=storage, directions=["maximize", "minimize"])
    two.optimize(lambda trial: (trial.suggest_float("x", 0, 1), float("inf")), n_trials=1)
