from __future__ import annotations

import contextlib
import gzip
import json
import random
import time

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.measurements import read_table
from isorun.errors import InputError

ROWS = [{"model": "a", "value": 0.5}, {"model": "b", "value": 0.25}, {"model": "a", "value": 1.0}]
CSV = "model,value\na,0.5\nb,0.25\na,1.0\n"


def written(folder, name, text):
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def refusal(folder, name, text):
    with pytest.raises(InputError) as refused:
        read_table(written(folder, name, text))
    return str(refused.value)


FILES = {
    "t.csv": CSV,
    "t.csv.gz": CSV,
    "bom.csv": "\ufeff" + CSV,
    "semicolon.csv": CSV.replace(",", ";"),
    "crlf.csv": CSV.replace("\n", "\r\n"),
    "t.tsv": CSV.replace(",", "\t"),
    "t.jsonl": "\n".join(map(json.dumps, ROWS)),
    "t.ndjson.gz": "\n".join(map(json.dumps, ROWS)) + "\n\n",
    "t.json": json.dumps(ROWS),
    "columns.json": json.dumps({"model": ["a", "b", "a"], "value": [0.5, 0.25, 1.0]}),
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_text_file_gives_the_same_table(tmp_path, name):
    table = read_table(written(tmp_path, name, FILES[name]))
    assert table.labels("model") == ["a", "b", "a"]
    assert table.numbers("value").tolist() == [0.5, 0.25, 1.0]


FRAMES = {
    "pandas": pd.DataFrame(ROWS),
    "polars": pl.DataFrame(ROWS),
    "pyarrow": pa.Table.from_pylist(ROWS),
    "columns": {"model": ["a", "b", "a"], "value": np.array([0.5, 0.25, 1.0])},
    "rows": ROWS,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_columns_and_rows_give_the_same_table(kind):
    table = read_table(FRAMES[kind])
    assert table.labels("model") == ["a", "b", "a"]
    assert table.numbers("value").tolist() == [0.5, 0.25, 1.0]
    assert read_table(table) is table


def test_parquet_is_read(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").numbers("value").tolist() == [0.5, 0.25, 1.0]


def test_broken_files_are_refused_with_a_reason(tmp_path):
    assert "empty" in refusal(tmp_path, "t.csv", "")
    assert "empty" in refusal(tmp_path, "t.jsonl", " \n")
    assert "no rows" in refusal(tmp_path, "t.csv", "model,value\n")
    assert "line 3" in refusal(tmp_path, "t.csv", "a,b\n1,2\n3\n4,5\n")
    assert "'a'" in refusal(tmp_path, "t.csv", "a,b,a\n1,2,3\n")
    assert "UTF-8" in refusal(tmp_path, "t.csv", b"a,b\n1,\xff\n")
    assert "line 2" in refusal(tmp_path, "t.jsonl", '{"a": 1}\n{"a": \n')
    assert "line 2" in refusal(tmp_path, "t.jsonl", '{"a": 1}\n[1]\n')
    assert "no table" in refusal(tmp_path, "t.json", "3")
    assert ".csv" in refusal(tmp_path, "t.xlsx", "x")
    assert "Parquet" in refusal(tmp_path, "t.parquet", "x")


def test_a_cut_gzip_file_is_refused(tmp_path):
    path = written(tmp_path, "t.csv.gz", CSV)
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(InputError, match="cannot read"):
        read_table(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="a folder"):
        read_table(tmp_path)


def test_an_object_that_is_no_table_is_refused():
    with pytest.raises(InputError, match="cannot read a table"):
        read_table(3)
    with pytest.raises(InputError, match="different lengths"):
        read_table({"a": [1, 2], "b": [1]})
    with pytest.raises(InputError, match="no rows"):
        read_table([])


def test_a_column_that_is_not_there_lists_the_columns_and_the_nearest():
    with pytest.raises(InputError, match=r"(?s)model, value.*did you mean 'value'"):
        read_table(ROWS).numbers("valu")


def test_text_in_a_numeric_column_names_its_line_and_counts(tmp_path):
    path = written(tmp_path, "t.csv", 'model,value\n"a\nb",1\nc,x1\nd,1_000\n')
    with pytest.raises(InputError, match=r"(?s)'value'.*'x1' on line 4; 2 such cells of 3"):
        read_table(path).numbers("value")


@pytest.mark.parametrize("missing", ["", "NA", "nan", "null", "None", "N/A"])
def test_missing_values_are_counted_and_never_dropped_silently(tmp_path, missing):
    path = written(tmp_path, "t.csv", f"g,value\na,1\na,{missing}\nb,inf\nb,2\n")
    with pytest.raises(InputError, match="1 missing or NaN and 1 infinite of 4, the first on line 3"):
        read_table(path).groups("value", ["g"])
    groups = read_table(path).groups("value", ["g"], drop_missing=True)
    assert [(group.name, group.values.finite.tolist(), group.values.dropped) for group in groups] == [
        ("a", [1.0], 1),
        ("b", [2.0], 1),
    ]


def test_rows_that_lack_a_key_have_a_missing_cell_there():
    table = read_table([{"a": 1}, {"b": 2}])
    assert np.isnan(table.numbers("a")[1])
    assert table.labels("b") == ["", "2"]


def test_groups_come_in_the_order_of_their_labels_numbers_by_size():
    table = read_table({"lr": ["10", "9", "x", "9"], "v": [1.0, 2.0, 3.0, 4.0]})
    assert [group.name for group in table.groups("v", ["lr"])] == ["9", "10", "x"]


def test_where_keeps_rows_and_lists_labels_that_exist():
    table = read_table(ROWS)
    assert table.where({"model": "a"}).numbers("value").tolist() == [0.5, 1.0]
    with pytest.raises(InputError, match="a, b"):
        table.where({"model": "c"})


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(deadline=None)
def test_numbers_survive_a_csv_file(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_text("v,w\n" + "".join(f"{value!r},x\n" for value in values))
    assert read_table(path).numbers("v").tolist() == values


@given(st.binary(max_size=200), st.sampled_from(["t.csv", "t.tsv", "t.jsonl", "t.json", "t.csv.gz", "t.parquet"]))
@settings(deadline=None)
def test_any_bytes_are_a_table_or_a_clear_refusal(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("t") / name
    path.write_bytes(data)
    with contextlib.suppress(InputError):
        assert read_table(path).rows > 0


def test_fifty_thousand_rows_are_read_in_well_under_a_second(tmp_path):
    path = written(tmp_path, "t.csv", "model,seed,value\n" + "".join(f"m{i % 7},{i},{i / 3}\n" for i in range(50_000)))
    started = time.process_time()  # other work may share the machine
    groups = read_table(path).groups("value", ["model"])
    assert time.process_time() - started < 1.0
    assert sum(group.values.finite.size for group in groups) == 50_000


def test_a_file_that_is_not_gzipped_despite_its_name_is_refused(tmp_path):
    (tmp_path / "t.csv.gz").write_text(CSV)
    with pytest.raises(InputError, match=r"cannot read t\.csv\.gz"):
        read_table(tmp_path / "t.csv.gz")


@pytest.mark.parametrize("backend", ["pyarrow", "polars"])
def test_a_damaged_parquet_file_is_told_as_one(tmp_path, backend, monkeypatch):
    """Also where Polars panics, which is no Exception."""
    read = narwhals.read_parquet

    def only_this(path, *, backend_asked=backend, backend):
        if backend != backend_asked:
            raise ImportError(backend)
        return read(path, backend=backend)

    monkeypatch.setattr(narwhals, "read_parquet", only_this)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS * 20), path)
    whole = path.read_bytes()
    rng = random.Random(1)
    refused = 0
    for number in range(60):
        data = bytearray(whole)
        if number % 2:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            read_table(path).rows  # noqa: B018
        except InputError:
            refused += 1
    assert refused >= 30


def test_a_panic_of_a_library_is_told_and_an_interruption_is_not(tmp_path, monkeypatch):
    class Panic(BaseException):
        pass

    def failing(error):
        def read(path, *, backend):
            raise error

        return read

    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(narwhals, "read_parquet", failing(Panic("index out of bounds\nstack backtrace")))
    with pytest.raises(InputError, match=r"as Parquet\n  found:   index out of bounds\n"):
        read_table(tmp_path / "t.parquet")
    monkeypatch.setattr(narwhals, "read_parquet", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        read_table(tmp_path / "t.parquet")
