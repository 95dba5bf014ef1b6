"""Malformed studies by the thousand: each is either a plan or one StudyError, never anything else, and soon.

What is planned is planned as written: a study survives the way through its document, and loading it again gives the
same cells. The full form makes 7,000 studies.
"""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from whole_study import FULL

from isorun.errors import StudyError
from isorun.study.cells import cells_of
from isorun.study.design import KEYS, document_of, load_study, study_from_document

GOOD = "".join(line for line in FULL.splitlines(keepends=True) if line.strip())
HOSTILE = (
    *("inf", "-inf", "nan", "-1", "0", "1e400", "9" * 400, "1" + "0" * 5000, "0x10", "1_000", "true", "[]", "{}", "''"),
    *('"\\u0000"', '"\\u001b[31m"', '"\\u202e"', '"a|b"', '"{seed"', '"{{seed}}"', '"{config.nope}"', '"<script>"'),
    *('["a", "a"]', "[1, 1]", "[[[]]]", "{ uniform = [2, 1] }", "{ choice = [] }", "1979-05-27", '"10 years"', '""'),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(10**300, 10**320),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["default", "fixed-seed", "higher", "10m", "python train.py {seed}", "{config.lr}", "a | b", "\0"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(
                st.text(max_size=8),
                st.sampled_from(
                    ["command", "function", "configs", "draws", "uniform", "integer", "env", "threads", "metric"]
                ),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=8)), VALUES, max_size=6)
LINES = st.integers(0, GOOD.count("\n") - 1)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("remove"), LINES, st.just("")),
        st.tuples(st.just("double"), LINES, st.just("")),
        st.tuples(st.just("value"), LINES, st.sampled_from(HOSTILE)),
        st.tuples(st.just("cut"), LINES, st.just("")),
        st.tuples(st.just("insert"), LINES, st.text(max_size=10)),
        st.tuples(st.just("key"), LINES, st.sampled_from(("x", "name", "seeds", "lr", "command", "levels"))),
    ),
    min_size=1,
    max_size=3,
)


def edited(edits):
    lines = GOOD.splitlines()
    for kind, place, text in edits:
        line = lines[place % len(lines)]
        key = line.partition(" = ")[0]
        changed = {
            "remove": [],
            "double": [line, line],
            "value": [f"{key} = {text}"] if " = " in line else [line],
            "cut": [line[: len(line) // 2]],
            "insert": [line[: len(line) // 2] + text + line[len(line) // 2 :]],
            "key": [line.replace(key, text, 1)],
        }[kind]
        lines[place % len(lines) : place % len(lines) + 1] = changed
        lines = lines or [""]
    return "\n".join(lines)


def outcome(build):
    began = time.process_time()
    try:
        study = build()
        cells = cells_of(study)
    except StudyError as error:
        return "refused" if error.what and "Traceback" not in error.message() else "refused without a word"
    finally:
        assert time.process_time() - began < 10
    again = study_from_document(document_of(study), study.folder, study.name)
    if again != study or [cell.id for cell in cells_of(again)] != [cell.id for cell in cells]:
        return "changed on its way through its document"
    return "planned" if cells else "planned nothing"


def check_document(folder, document):
    assert outcome(lambda: study_from_document(document, folder, "s")) in ("planned", "refused")


def check_file(path, content):
    path.write_bytes(content)
    assert outcome(lambda: load_study(path)) in ("planned", "refused")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studies")


def test_the_study_that_is_edited_is_a_good_one(folder):
    (folder / "good.toml").write_text(GOOD)
    assert outcome(lambda: load_study(folder / "good.toml")) == "planned"


@settings(max_examples=400)
@given(DOCUMENTS)
@pytest.mark.long
def test_any_document_is_planned_or_refused(folder, document):
    check_document(folder, document)


@settings(max_examples=300)
@given(DOCUMENTS)
@pytest.mark.long
def test_a_good_study_with_bad_parts_is_planned_or_refused(folder, document):
    check_document(folder, {**document, "approaches": {"a": "python train.py"}})


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_in_a_study_file_are_planned_or_refused(folder, content):
    check_file(folder / "bytes.toml", content)


@settings(max_examples=400)
@given(EDITS)
def test_a_good_study_file_with_mistakes_is_planned_or_refused(folder, edits):
    check_file(folder / "edited.toml", edited(edits).encode("utf-8", "surrogateescape"))


@pytest.mark.slow
@settings(max_examples=2000, suppress_health_check=list(HealthCheck))
@given(DOCUMENTS)
def test_any_document_in_full(folder, document):
    check_document(folder, document)


@pytest.mark.slow
@settings(max_examples=1500, suppress_health_check=list(HealthCheck))
@given(DOCUMENTS)
def test_good_studies_with_bad_parts_in_full(folder, document):
    check_document(folder, {**document, "approaches": {"a": "python train.py"}})


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200))
def test_any_bytes_in_full(folder, content):
    check_file(folder / "bytes.toml", content)


@pytest.mark.slow
@settings(max_examples=3000, suppress_health_check=list(HealthCheck))
@given(EDITS)
def test_study_files_with_mistakes_in_full(folder, edits):
    check_file(folder / "edited.toml", edited(edits).encode("utf-8", "surrogateescape"))
