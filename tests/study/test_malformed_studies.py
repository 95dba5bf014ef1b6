"""Hundreds of malformed studies: each is either a plan or one StudyError, never anything else."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isorun.errors import StudyError
from isorun.study.cells import cells_of
from isorun.study.design import KEYS, load_study, study_from_document

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
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


def outcome(build):
    try:
        cells = cells_of(build())
    except StudyError as error:
        return "refused" if error.what else "refused without a word"
    return "planned" if cells else "planned nothing"


@settings(max_examples=600, deadline=None)
@given(DOCUMENTS)
def test_any_document_is_planned_or_refused(tmp_path_factory, document):
    folder = tmp_path_factory.getbasetemp()
    assert outcome(lambda: study_from_document(document, folder, "s")) in ("planned", "refused")


@settings(max_examples=400, deadline=None)
@given(DOCUMENTS)
def test_a_good_study_with_one_bad_part_is_planned_or_refused(tmp_path_factory, document):
    good = {"approaches": {"a": "python train.py"}}
    folder = tmp_path_factory.getbasetemp()
    assert outcome(lambda: study_from_document({**document, **good}, folder, "s")) in ("planned", "refused")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_in_a_study_file_are_planned_or_refused(tmp_path, content):
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    assert outcome(lambda: load_study(path)) == "refused"
