"""Search logs in both their forms: the same records, and a clear message for everything that is damaged."""

from __future__ import annotations

import gzip
import pickle
from dataclasses import replace

import pytest
from made_search_logs import made_search, write_originals, write_tables

from isorun.errors import DataError
from isorun.zoo.data.search_logs import SearchLogs, load_originals, load_search_logs, load_tables


def by_name(logs):
    return {(search.case, search.tuner): search for search in logs.searches}


def test_tables_and_the_authors_files_give_the_same_records(tmp_path, small_logs):
    tables = load_search_logs(write_tables(tmp_path / "tables", small_logs))
    originals = load_search_logs(write_originals(tmp_path / "originals", small_logs))
    assert by_name(tables) == by_name(originals) == by_name(small_logs)
    assert set(tables.running) == set(originals.running) == set(small_logs.running)
    assert "tables" in tables.origin
    assert "authors" in originals.origin


def test_one_tuner_has_one_name_whatever_the_log_calls_it(tmp_path, small_logs):
    renamed = replace(small_logs, searches=(made_search([0.1], "Case1-poorperformance", "bayes"),), running=())
    assert [(search.case, search.tuner) for search in load_tables(write_tables(tmp_path, renamed)).searches] == [
        ("I", "bayesian")
    ]


def test_keys_that_start_with_the_number_put_trials_in_order(tmp_path):
    search = made_search([0.1] * 12, "II", "dream")
    keyed = replace(search, trials=tuple(replace(trial, key=f"{trial.number}-0.1-ab") for trial in search.trials[::-1]))
    found = load_originals(write_originals(tmp_path, SearchLogs((keyed,), (), "made")))
    assert [trial.number for trial in found.searches[0].trials] == list(range(12))


def test_the_published_logs_hold_eight_searches_of_800_trials_and_7589_epochs(real_logs_folder):
    logs = load_search_logs(real_logs_folder)
    sizes = {name: len(search.trials) for name, search in by_name(logs).items()}
    assert sizes == {
        ("I", "bayesian"): 50,
        ("I", "dream"): 25,
        ("I", "greedy"): 50,
        ("I", "hyperband"): 243,
        ("II", "bayesian"): 26,
        ("II", "dream"): 26,
        ("II", "greedy"): 42,
        ("II", "hyperband"): 338,
    }
    assert sum(len(trial.epochs) for search in logs.searches for trial in search.trials) == 7589
    assert {search.data for search in logs.searches} == {"", "cifar100"}


def test_a_score_is_the_best_validation_accuracy_of_its_epochs_in_the_published_logs(real_logs_folder):
    for search in load_search_logs(real_logs_folder).searches:
        for trial in search.trials:
            assert trial.score == max(epoch.val_accuracy for epoch in trial.epochs)


def test_the_published_logs_survive_being_written_as_the_authors_write_them(real_logs_folder, tmp_path):
    logs = load_search_logs(real_logs_folder)
    again = load_originals(write_originals(tmp_path, logs))
    assert by_name(again) == by_name(logs)
    assert set(again.running) == set(logs.running)


def edited(folder, file, change):
    path = folder / file
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))
    else:
        path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("trials.csv", lambda text: text.replace("elapsed_s", "seconds"), "lacks columns"),
        ("trials.csv", lambda text: text.replace("0.8", "high"), "score is no number"),
        ("trials.csv", lambda text: text.replace("0.8", "nan"), "no usable score"),
        ("trials.csv", lambda text: text.replace("2400.0", "1.0"), "ended before the one before"),
        ("trials.csv", lambda text: "\n".join(text.splitlines()[:-1]), "lacks trials that have epochs"),
        (
            "trials.csv",
            lambda text: "\n".join([text.splitlines()[0], *text.splitlines()[2:]]),
            "lacks trials that have",
        ),
        ("trials.csv", lambda text: text[: text.rindex(",0.3,")], "is cut short"),
        ("trials.csv", lambda text: text.replace(",3,3,", ",-3,3,"), "trial is no count"),
        ("trials.csv", lambda text: text[:0], "lacks columns"),
        ("epochs.csv.gz", lambda text: "\n".join(text.splitlines()[:-1]), "not all there"),
        ("epochs.csv.gz", lambda text: text.replace(",0,0,0,", ",0,0,1,"), "epoch is missing"),
        ("best_so_far.csv", lambda text: text.replace("trial,1,", "trial,2,"), "point is missing"),
    ],
)
def test_damaged_tables_say_what_does_not_fit(tmp_path, small_logs, file, change, says):
    folder = write_tables(tmp_path, small_logs)
    edited(folder, file, change)
    with pytest.raises(DataError, match=says) as raised:
        load_tables(folder)
    assert file.split(".")[0] in str(raised.value) or "epochs" in str(raised.value)
    assert "isorun data get dream-search-logs" in str(raised.value)


def test_a_trial_without_epochs_that_is_missing_is_noticed(tmp_path):
    search = made_search([0.1, 0.2, 0.3])
    bare = replace(search, trials=tuple(replace(trial, epochs=()) for trial in (search.trials[0], search.trials[2])))
    with pytest.raises(DataError, match="has no trial 1"):
        load_tables(write_tables(tmp_path, SearchLogs((bare,), (), "made")))


@pytest.mark.parametrize("file", ["trials.csv", "epochs.csv.gz", "best_so_far.csv"])
def test_a_table_that_is_not_there_is_named(tmp_path, small_logs, file):
    folder = write_tables(tmp_path, small_logs)
    (folder / file).unlink()
    with pytest.raises(DataError, match="is missing"):
        load_tables(folder)


@pytest.mark.parametrize("keep", [10, 60, -9])
def test_a_packed_table_that_was_cut_off_is_not_read(tmp_path, small_logs, keep):
    file = write_tables(tmp_path, small_logs) / "epochs.csv.gz"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError, match="cannot read"):
        load_tables(tmp_path)


def test_a_table_that_is_no_text_is_not_read(tmp_path, small_logs):
    (write_tables(tmp_path, small_logs) / "trials.csv").write_bytes(b"\xff\xfe\x00case")
    with pytest.raises(DataError, match="cannot read"):
        load_tables(tmp_path)


@pytest.mark.parametrize(
    "log",
    [
        [1, 2],
        {0: {"time": 1.0, "score": 0.5}},
        {0: {"time": 1.0, "score": 0.5, "history": {"loss": [1.0]}}},
        {
            0: {
                "time": "soon",
                "score": 0.5,
                "history": {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []},
            }
        },
        {"first": {"time": 1.0, "score": 0.5, "history": {}}},
        {0: {"time": 1.0, "score": 0.5, "history": {"loss": [1], "accuracy": [], "val_loss": [], "val_accuracy": []}}},
    ],
)
def test_a_plain_file_that_is_no_search_log_says_so(tmp_path, log):
    (tmp_path / "Case" / "greedy").mkdir(parents=True)
    (tmp_path / "Case" / "greedy" / "log.pkl").write_bytes(pickle.dumps(log))
    with pytest.raises(DataError, match="not a search log"):
        load_originals(tmp_path)


def test_a_folder_without_logs_names_the_command_that_gets_them(tmp_path):
    with pytest.raises(DataError, match="isorun data get dream-search-logs"):
        load_search_logs(tmp_path)
