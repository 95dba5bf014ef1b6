from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isorun.sources import Found, Reading, files
from isorun.study.design import Sources


def read_files(sources: Sources, folder: Path, since_unix: float) -> Found:
    return Reading(sources).finish(folder, since_unix)[0]


BEGAN = 1_000_000.0
WRITTEN = BEGAN + 60.5


def read(folder: Path, *patterns: str, since: float = BEGAN) -> Found:
    return read_files(Sources(files=patterns), folder, since)


def write(folder: Path, name: str, text: str, modified: float = WRITTEN) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (modified, modified))
    return path


def codes(found: Found) -> list[str]:
    return [note.code for note in found.notes]


def test_a_json_object_holds_final_values(tmp_path: Path) -> None:
    write(tmp_path, "r.json", '{"test": {"acc": 0.97}, "loss": NaN, "model": "lenet", "epoch": 5}')
    found = read(tmp_path, "r.json")
    assert found.results["test/acc"] == 0.97
    assert math.isnan(found.results["loss"])
    assert found.series["test/acc"].steps == (5.0,)
    assert found.series["test/acc"].seconds == (60.5,)
    assert found.origins["test/acc"] == "file: r.json"
    assert codes(found) == ["files.not-finite", "files.text"]
    assert "model" in found.notes[1].message


def test_lists_in_a_json_object_are_series(tmp_path: Path) -> None:
    write(
        tmp_path,
        "history.json",
        '{"val_acc": [0.1, 0.2], "log_history": [{"epoch": 1, "loss": 3}, {"epoch": 2, "loss": 2}]}',
    )
    found = read(tmp_path, "history.json")
    assert found.series["val_acc"].values == (0.1, 0.2)
    assert found.series["val_acc"].steps == (0.0, 1.0)
    assert found.series["loss"].steps == (1.0, 2.0)


@pytest.mark.parametrize(
    ("clock", "steps"),
    [("epoch", [1, 2, 3]), ("epochs", [1, 2, 3]), ("step", [100, 200, 300]), ("train/epoch", [2, 4, 6])],
)
def test_a_list_that_counts_is_the_clock_of_those_beside_it_and_no_metric(
    tmp_path: Path, clock: str, steps: list[float]
) -> None:
    group = clock.rpartition("epoch")[0] if "/" in clock else ""
    data = {clock: steps, f"{group}loss": [0.5, 0.4, 0.3], f"{group}rate": ["x", 1.0, 2.0], "other": [1.0, 2.0]}
    (tmp_path / "history.json").write_text(json.dumps(data))
    found = read(tmp_path, "history.json")
    assert set(found.series) == {f"{group}loss", f"{group}rate", "other"}
    assert list(found.series[f"{group}loss"].steps) == steps
    assert list(found.series[f"{group}rate"].steps) == steps[1:]
    assert list(found.series["other"].steps) == [0.0, 1.0]


def test_a_json_list_of_rows_and_json_lines_read_the_same(tmp_path: Path) -> None:
    rows = [{"epoch": 1, "acc": 0.5, "elapsed": 10}, {"epoch": 2, "acc": 0.75, "elapsed": 20}]
    write(tmp_path, "a.json", json.dumps(rows))
    write(tmp_path, "b.jsonl", "\n".join(map(json.dumps, rows)))
    write(tmp_path, "c.json", "\n".join(map(json.dumps, rows)))
    series = [read(tmp_path, name).series for name in ("a.json", "b.jsonl", "c.json")]
    assert series[0] == series[1] == series[2]
    assert series[0]["acc"].steps == (1.0, 2.0)
    assert series[0]["acc"].seconds == (10.0, 20.0)


def test_a_torn_json_line_is_noted_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "m.jsonl", '{"epoch": 1, "acc": 0.5}\n[1]\n{"epoch": 2, "ac')
    found = read(tmp_path, "m.jsonl")
    assert found.series["acc"].values == (0.5,)
    assert "m.jsonl, line 2" in found.notes[0].message
    assert "2 such lines" in found.notes[0].message


@pytest.mark.parametrize(
    ("whole", "values", "noted"), [(True, (0.5, 0.25), ["files.no-times"]), (False, (0.5,), ["files.torn"])]
)
def test_a_last_row_without_an_end_counts_where_the_run_ended_well(tmp_path: Path, whole, values, noted) -> None:
    write(tmp_path, "r.csv", "epoch,acc\n1,0.5\n2,0.25")
    found, _ = Reading(Sources(files=("r.csv",))).finish(tmp_path, BEGAN, whole=whole)
    assert found.series["acc"].values == values
    assert codes(found) == noted


def test_a_csv_with_empty_cells_uses_epochs_where_they_are_unique_and_steps_where_not(tmp_path: Path) -> None:
    write(
        tmp_path, "metrics.csv", "epoch,step,train_loss,val_acc\n0,4,0.9,\n0,9,0.8,\n0,9,,0.5\n1,14,0.7,\n1,19,,0.6\n"
    )
    found = read(tmp_path, "metrics.csv")
    assert found.series["val_acc"].steps == (0.0, 1.0)
    assert found.series["train_loss"].steps == (4.0, 9.0, 14.0)
    assert codes(found) == ["files.no-times"]


def test_a_csv_of_one_row_without_a_clock_holds_final_values(tmp_path: Path) -> None:
    write(tmp_path, "r.csv", "acc;loss\n0.5;0.25\n")
    assert read(tmp_path, "r.csv").results == {"acc": 0.5, "loss": 0.25}


def test_a_column_in_which_a_comma_may_be_decimal_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "r.csv", "epoch;acc;loss\n1;0.5;0,912\n2;0.6;3\n")
    found = read(tmp_path, "r.csv")
    assert set(found.series) == {"acc"}
    assert codes(found)[0] == "files.left-out"


def test_text_uneven_rows_and_nan_in_a_csv_are_noted_with_their_line(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,acc,name\n1,0.5,a\n2,oops,b\n3,0.7\n4,nan,c\n")
    found = read(tmp_path, "m.csv")
    assert found.series["acc"].steps == (1.0, 4.0)
    messages = {note.code: note.message for note in found.notes}
    assert "m.csv, line 4: 2 cells under 3 names" in messages["files.bad-line"]
    assert "m.csv, line 3: 'acc' is 'oops'" in messages["files.not-a-number"]
    assert "m.csv, line 5: 'acc' is not finite" in messages["files.not-finite"]
    assert "name" in messages["files.text"]


def test_wall_times_become_seconds_since_the_run_began(tmp_path: Path) -> None:
    since = 1_700_000_000.0
    write(tmp_path, "m.csv", f"epoch,acc,wall_time\n1,0.5,{since + 3}\n2,0.6,{since + 7}\n", modified=since + 9)
    assert read(tmp_path, "m.csv", since=since).series["acc"].seconds == (3.0, 7.0)


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "files.empty"), ("1,2\n3,4\n", "files.no-header"), ("12", "files.no-header"), ("{", "files.bad-line")],
)
def test_a_file_that_cannot_be_used_is_noted(tmp_path: Path, text: str, code: str) -> None:
    write(tmp_path, "m.txt", text)
    found = read(tmp_path, "m.txt")
    assert found.series == {}
    assert code in codes(found)


def test_a_file_that_is_too_large_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_FILE", 3)
    write(tmp_path, "m.csv", "a,b\n1,2\n")
    assert codes(read(tmp_path, "m.csv")) == ["files.too-large"]


def test_rows_beyond_the_limit_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_ROWS", 3)
    write(tmp_path, "m.csv", "epoch,a\n" + "".join(f"{row},1\n" for row in range(5)))
    found = read(tmp_path, "m.csv")
    assert len(found.series["a"].values) == 3
    assert "files.limit" in codes(found)


def test_files_of_an_earlier_run_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,a\n1,1\n", modified=BEGAN - 5.5)
    assert codes(read(tmp_path, "m.csv")) == ["files.stale"]
    assert codes(read(tmp_path, "other.csv")) == ["files.missing"]


def test_a_file_system_with_whole_seconds_does_not_lose_a_file_of_the_first_second(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,a\n1,1\n", modified=BEGAN)
    assert set(read(tmp_path, "m.csv", since=BEGAN + 0.9).series) == {"a"}


def test_patterns_find_files_in_folders_and_names_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, "logs/fold0.csv", "epoch,acc\n1,0.5\n")
    write(tmp_path, "logs/fold1.csv", "epoch,acc,extra\n1,0.6,2\n")
    found = read(tmp_path, "**/fold*.csv")
    assert set(found.series) == {"logs/fold0/acc", "logs/fold1/acc", "extra"}


def test_absolute_paths_and_patterns_are_the_users_own(tmp_path: Path) -> None:
    path = write(tmp_path, "away/m.csv", "epoch,acc\n1,0.5\n")
    for pattern in (str(path), str(path.parent / "*.csv")):
        found = read(tmp_path / "elsewhere", pattern)
        assert found.series["acc"].values == (0.5,)
        assert found.origins["acc"] == f"file: {path}"


@pytest.mark.parametrize("pattern", ["", "**x/[", "\0", "/"])
def test_a_pattern_that_cannot_match_is_noted(tmp_path: Path, pattern: str) -> None:
    found = read(tmp_path, pattern)
    assert found.series == {}
    assert codes(found) == ["files.missing"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)),
    st.sampled_from([".json", ".jsonl", ".csv", ".x"]),
)
def test_no_file_makes_reading_fail(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    os.utime(path, (WRITTEN, WRITTEN))
    found = read(tmp_path, path.name)
    assert set(found.results) <= set(found.series) == set(found.origins)
    assert found.notes or content.strip()


def values_in(found: Found) -> dict[str, list[float]]:
    return {name: list(series.values) for name, series in found.series.items()}


def told(found: Found) -> list[str]:
    return [note.message for note in found.notes if note.code != "files.no-times"]


def test_a_header_that_comes_again_in_another_order_names_the_columns_below_it(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,loss,val_acc\n1,0.9,0.5\nepoch,val_acc,loss\n2,0.6,0.8\n")
    found = read(tmp_path, "m.csv")
    assert values_in(found) == {"loss": [0.9, 0.8], "val_acc": [0.5, 0.6]}
    assert told(found) == []


def test_a_header_that_comes_again_with_more_names_adds_columns(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,loss\n1,0.9\nepoch,loss,acc\n2,0.8,0.6\n")
    assert values_in(read(tmp_path, "m.csv")) == {"loss": [0.9, 0.8], "acc": [0.6]}


@given(st.permutations(["epoch", "loss", "val_acc", "lr"]), st.permutations(["epoch", "loss", "val_acc", "lr"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_every_header_counts_for_the_rows_below_it(tmp_path: Path, first: list[str], second: list[str]) -> None:
    rows = [
        {"epoch": "1", "loss": "0.9", "val_acc": "0.5", "lr": "0.1"},
        {"epoch": "2", "loss": "0.8", "val_acc": "0.6", "lr": "0.2"},
    ]
    lines = [cell for names, row in zip((first, second), rows, strict=True) for cell in (names, map(row.get, names))]
    write(tmp_path, "m.csv", "".join(",".join(map(str, cells)) + "\n" for cells in lines))
    assert values_in(read(tmp_path, "m.csv")) == {"loss": [0.9, 0.8], "val_acc": [0.5, 0.6], "lr": [0.1, 0.2]}


def test_a_mark_after_the_last_column_hides_no_row(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,loss,val_acc\n1,0.9,0.5\n2,0.8,0.8,*\n3,0.7,0.6,\n")
    found = read(tmp_path, "m.csv")
    assert values_in(found) == {"loss": [0.9, 0.8, 0.7], "val_acc": [0.5, 0.8, 0.6]}
    assert told(found) == []


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("2,0.8", "2 cells under 3 names"),
        ("2,0.8,0.6,0.7", "4 cells under 3 names"),
        ("2,0,8,*", "4 cells under 3 names"),
        ("final,0.8,0.6", "epoch is 'final'"),
        ("lenet,0.8,0.6", "epoch is 'lenet'"),
    ],
)
def test_a_row_that_does_not_fit_is_left_out_and_told_with_its_line(tmp_path: Path, row: str, why: str) -> None:
    write(tmp_path, "m.csv", f"epoch,loss,val_acc\n1,0.9,0.5\n{row}\n3,0.7,0.6\n")
    found = read(tmp_path, "m.csv")
    assert values_in(found) == {"loss": [0.9, 0.7], "val_acc": [0.5, 0.6]}
    assert told(found) == [f"m.csv, line 3: {why}; 1 such line left out"]


def test_lines_are_counted_as_in_the_file_also_below_a_cell_of_two_lines(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", 'epoch,note,acc\n1,"a\nb",0.5\n2,c\n')
    assert "m.csv, line 4: 2 cells under 3 names; 1 such line left out" in told(read(tmp_path, "m.csv"))


def test_two_columns_of_one_name_are_left_out_and_told(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,val_acc,loss,val_acc\n1,0.9,0.4,0.5\n2,0.8,0.3,0.6\n")
    found = read(tmp_path, "m.csv")
    assert values_in(found) == {"loss": [0.4, 0.3]}
    assert told(found) == ["left out: val_acc: two columns have this name (m.csv, line 1)"]


def test_a_number_with_a_hole_in_it_is_none(tmp_path: Path) -> None:
    write(tmp_path, "m.csv", "epoch,val_acc\n1,0.5\n2,0.\x006\n")
    found = read(tmp_path, "m.csv")
    assert values_in(found) == {"val_acc": [0.5]}
    assert "files.not-a-number" in codes(found)
