"""Engines as a family: isorun's own and one of another distribution keep the contract, and liars are found."""

import errno
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import isorun
from isorun.cli.main import main
from isorun.errors import InputError, IsorunError, PluginError, StudyError
from isorun.repair.agenda import _Choosing
from isorun.repair.engines import open_engine, read_search, strategy_of, without_password, written
from isorun.repair.engines.keras_folders import KerasTunerFolder
from isorun.repair.searches import Search
from isorun.testing.engine_contract import EngineContract
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore

sys.path.append(str(Path(__file__).parents[2] / "plugin_distribution"))

from isorun_example.engine import SPACE, Ledger

POINTS = "[isorun.engines]\nledger = isorun_example.engine:Ledger\nodd = isorun_example.engine:SPACE\n"


def ledger(path, scores):
    """A ledger with one search, a trial a score."""
    made = Ledger(f"ledger:{path}")
    for number, score in enumerate(scores):
        values = {"lr": 10.0**-number if number < 4 else 0.5, "units": 8 + number}
        made.append("mine", parameters=values, score=None if math.isnan(score) else score)
    return made.where


class TestLedger(EngineContract):
    engine = Ledger

    def fill(self, folder, scores):
        return ledger(folder / "book", scores)

    def missing(self, folder):
        return f"ledger:{folder}/book"

    def function(self, score):
        return score


class TestKerasTunerFolder(EngineContract):
    engine = KerasTunerFolder
    goes_on = False  # by tuners, in test_keras_tuner_engine.py

    def fill(self, folder, scores):
        project = folder / "project"
        space = [{"class_name": "Float", "config": {"name": "lr", "min_value": 1e-4, "max_value": 1.0}}]
        for number, score in enumerate(scores):
            told = {
                "trial_id": str(number),
                "hyperparameters": {"space": space, "values": {"lr": 10.0**-number}},
                "metrics": {"metrics": {"acc": {"direction": "max", "observations": [{"value": [score]}]}}},
                "score": None if math.isnan(score) else score,
                "status": "FAILED" if math.isnan(score) else "COMPLETED",
            }
            (project / f"trial_{number}").mkdir(parents=True)
            (project / f"trial_{number}" / "trial.json").write_text(json.dumps(told))
        (project / "oracle.json").write_text(json.dumps({"hyperparameters": {"space": space}}))
        return f"keras-tuner:{project}"

    def missing(self, folder):
        return f"keras-tuner:{folder}/project"


class TestOptunaJournal(EngineContract):
    @pytest.fixture(autouse=True)
    def optuna(self):
        found = pytest.importorskip("optuna")
        found.logging.set_verbosity(found.logging.ERROR)

    @property
    def engine(self):
        from isorun.repair.engines.optuna import OptunaStorage

        return OptunaStorage

    def storage(self, folder):
        import optuna

        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(f"{folder}/s.log"))

    def fill(self, folder, scores):
        import optuna

        study = optuna.create_study(storage=self.storage(folder), study_name="mine", direction="maximize")
        values = iter(scores)
        study.optimize(lambda trial: next(values) + 0 * trial.suggest_float("lr", 1e-4, 1.0, log=True), len(scores))
        return self.missing(folder)

    def missing(self, folder):
        return f"journal:{folder}/s.log"

    def function(self, score):
        return lambda trial: score({"lr": trial.suggest_float("lr", 1e-4, 1.0, log=True)})


@pytest.mark.slow
class TestOptunaDatabase(TestOptunaJournal):
    def storage(self, folder):
        return self.missing(folder)

    def missing(self, folder):
        return f"sqlite:///{folder}/s.db"


class WritesWhenRead(Ledger):
    def read(self, name):
        self.path.with_name("cache").touch()
        return super().read(name)


class MakesWhatIsMissing(Ledger):
    def names(self):
        self.path.touch()
        return super().names() or ["mine"]


class KeepsFailures(Ledger):
    def read(self, name):
        found = super().read(name)
        kept = tuple(trial for trial in found.trials if trial.has_score)
        return Search(found.engine, found.name, found.direction, found.space, kept)


class ForgetsAtGoingOn(Ledger):
    def go_on(self, name, function, trials, policy, *, again):
        lines = self.path.read_text().splitlines(keepends=True)
        self.path.write_text("".join(lines[1:]))
        super().go_on(name, function, trials, policy, again=again)


class KeepsItsOwnCounsel(Ledger):
    def append(self, name, **told):
        super().append(name, **{**told, "origin": None, "why": ""})


class NeverAsks(Ledger):
    def go_on(self, name, function, trials, policy, *, again):
        for _ in range(trials):
            values = {"lr": 0.1, "units": 8}
            self.append(name, parameters=values, origin=0, score=function(values))


class TrainsSomethingElse(Ledger):
    def go_on(self, name, function, trials, policy, *, again):
        super().go_on(name, lambda values: function({**values, "lr": 0.123}), trials, policy, again=again)


class RewritesWhatWas(Ledger):
    def read(self, name):
        found = super().read(name)
        first, *rest = found.trials
        return replace(found, trials=(replace(first, parameters={"lr": 0.1, "units": 8 + len(rest)}), *rest))


class GivesNothingUp(Ledger):
    def give_up(self, name, number, why):
        return False


class ForgetsWhatWasLeft(Ledger):
    def go_on(self, name, function, trials, policy, *, again):
        super().go_on(name, function, trials, policy, again=False)


class RaisesWhatItLikes(Ledger):
    def _lines(self):
        return [json.loads(line) for line in self.path.read_text().split("\n") if line]


class DrawsAnew(Ledger):
    draws = 0

    @classmethod
    def propose(cls, strategy, search, space, seed):
        cls.draws += 1
        return super().propose(strategy, search, space, seed + cls.draws)


@pytest.mark.parametrize(
    ("liar", "found_by"),
    [
        (WritesWhenRead, "test_reading_writes_nothing_and_gives_the_same_again"),
        (MakesWhatIsMissing, "test_what_is_not_there_is_told_and_not_made"),
        (KeepsFailures, "test_trials_are_read_in_order_with_their_scores"),
        (ForgetsAtGoingOn, "test_going_on_loses_no_trial_and_says_who_proposed"),
        (KeepsItsOwnCounsel, "test_going_on_loses_no_trial_and_says_who_proposed"),
        (KeepsItsOwnCounsel, "test_a_trial_that_raises_is_a_failed_one_that_says_why"),
        (NeverAsks, "test_what_the_policy_plans_is_what_is_tried"),
        (TrainsSomethingElse, "test_what_the_policy_plans_is_what_is_tried"),
        (RewritesWhatWas, "test_going_on_loses_no_trial_and_says_who_proposed"),
        (NeverAsks, "test_a_trial_is_seen_running_and_stays_so_until_it_is_given_up"),
        (GivesNothingUp, "test_a_trial_is_seen_running_and_stays_so_until_it_is_given_up"),
        (ForgetsWhatWasLeft, "test_what_was_left_running_is_tried_again"),
        (RaisesWhatItLikes, "test_half_a_file_is_read_or_told"),
        (DrawsAnew, "test_strategies_propose_within_the_space_and_the_same_for_the_same_seed"),
    ],
)
def test_the_contract_finds_liars(liar, found_by, tmp_path):
    contract = TestLedger()
    contract.engine = liar
    filled = tmp_path / "filled"
    filled.mkdir()
    where = "" if "not_there" in found_by else contract.fill(filled, (0.5, math.nan, 0.25, 0.75))
    given = {"where": where, "tmp_path": filled}
    check = getattr(contract, found_by)
    wanted = check.__func__.__code__.co_varnames[1 : check.__func__.__code__.co_argcount]
    with pytest.raises((AssertionError, IsorunError, ValueError, pytest.fail.Exception)):
        check(**{name: given[name] for name in wanted})


@pytest.fixture
def shelf(installed):
    installed(POINTS)


@pytest.mark.usefixtures("shelf")
def test_an_engine_of_another_distribution_is_examined_and_gone_on_with(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ledger(Path("book"), [0.5] + [0.1] * 12)
    Path("train.py").write_text("def objective(values):\n    return 0.9 - values['lr'] / 10\n")
    assert main(["repair", "ledger:book", "--study", "mine", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["engine"], told["study"], told["trials"]) == ("ledger", "mine", 13)
    assert told["bugs"][0]["kind"] == "ineffective-search"
    assert main(
        [
            "repair",
            "ledger:book",
            "--in-process",
            "--prior",
            "none",
            "--continue",
            "3",
            "--objective",
            "train.py:objective",
            "--json",
        ]
    ) in (0, 3)
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == 16
    assert told["best"]["trial"] >= 13
    assert isorun.repair.examine("ledger:book").search.best.proposed_by == "isorun"
    assert main(["repair", "legder:book"]) == 1
    assert "isorun repair ledger:book" in capsys.readouterr().err
    assert main(["repair", "odd:book"]) == 1
    assert "allowed: a class of AbstractEngine" in capsys.readouterr().err


@pytest.mark.usefixtures("shelf")
def test_a_study_may_ask_an_engine_of_another_distribution_for_its_trials():
    table = {"space": {"lr": {"float": [1e-4, 1.0], "log": True}}, "metric": "acc", "trials": 3}

    def study(engine):
        searched = {**table, "engine": engine}
        return isorun.Study("s", approaches={"a": "true {config.lr}"}, metrics={"acc": "higher"}, search=searched)

    assert study("ledger:scatter").searches[""].engine == "ledger:scatter"
    with pytest.raises(StudyError, match=r"ledger:STRATEGY"):
        study("legder:scatter")
    executor = InstantExecutor(lambda job: Computed({"acc": float(job.cell.config_values["lr"])}))
    outcome = isorun.run(study("ledger:scatter"), store=MemoryStore(), executor=executor)
    tried = [record.cell.config_values["lr"] for record in outcome.records]
    assert len(set(tried)) == 3
    assert all(1e-4 <= lr <= 1.0 for lr in tried)
    search = Search("ledger", "s", "higher", SPACE, ())
    assert set(strategy_of("ledger:scatter").propose(search, SPACE, 1)) == {"lr", "units"}
    with pytest.raises(InputError, match=r"has no strategy 'scater'[\s\S]*did you mean 'scatter'"):
        strategy_of("ledger:scater")
    with pytest.raises(PluginError, match="no engine 'nobody'"):
        strategy_of("nobody:at-all")


@pytest.mark.parametrize(("engine", "hands_over"), [("ledger", False), ("clever", True)])
def test_an_engine_says_whether_a_strategy_is_chance_and_one_it_does_not_have_leaves_nothing(
    engine, hands_over, installed, tmp_path
):
    brought = "from isorun_example.engine import Ledger\nclass Clever(Ledger):\n    by_chance = ()\n"
    installed("[isorun.engines]\nledger = clever:Ledger\nclever = clever:Clever\n", clever=brought)
    table = {"space": {"lr": {"float": [1e-4, 1.0], "log": True}}, "metric": "acc", "trials": 3}

    def study(strategy):
        searched = {**table, "engine": f"{engine}:{strategy}"}
        return isorun.Study("s", approaches={"a": "true {config.lr}"}, metrics={"acc": "higher"}, search=searched)

    known = study("scatter")
    assert _Choosing(known, known.searches[""])._policy.hands_over is hands_over
    with pytest.raises(InputError, match=r"has no strategy 'two'[\s\S]*scatter"):
        isorun.run(study("two"), store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_password_is_not_told():
    assert without_password("mysql://me:secret@host/db") == "mysql://me:***@host/db"
    assert without_password("sqlite:///a:b@c.db") == "sqlite:///a:b@c.db"
    with pytest.raises(InputError) as refused:
        open_engine("mysqll://me:secret@host/db")
    assert "secret" not in str(refused.value)
    assert "isorun repair 'mysql://me:***@host/db'" in str(refused.value)


@pytest.mark.parametrize(
    ("word", "allowed"), [("maximize", "higher, lower"), ("complete", "finished, pruned"), ("categorical", "category")]
)
def test_words_that_an_engine_did_not_translate_are_refused(word, allowed, tmp_path):
    class Untranslated(Ledger):
        def read(self, name):
            found = super().read(name)
            if word == "maximize":
                return replace(found, direction=word)
            if word == "complete":
                return replace(found, trials=tuple(replace(one, state=word) for one in found.trials))
            return replace(found, space=tuple(replace(one, kind=word) for one in found.space))

    with pytest.raises(PluginError, match=f"{word}(.|\\n)*{allowed}"):
        read_search(Untranslated(ledger(tmp_path / "book", (0.5, 0.25))), None)


def test_a_storage_that_takes_nothing_more_is_told_whatever_an_engine_raises_on_top_of_it():
    def keeps():
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        finally:
            raise AssertionError("should not reach")

    with pytest.raises(InputError, match=r"ledger:book cannot be written(.|\n)*No space left"), written("ledger:book"):
        keeps()
    with pytest.raises(FileNotFoundError), written("ledger:book"):
        raise FileNotFoundError(errno.ENOENT, "a training's own error stays what it is")
