"""Answer selection data in its two forms, word vectors in theirs, the seeds."""

import gzip
import io
import itertools
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from isorun.errors import DataError, InputError
from isorun.zoo.data.answers import AnswerPair, load_answers, load_split, train_all_folder, with_both_labels
from isorun.zoo.data.word_vectors import load_word_vectors
from isorun.zoo.studies.tacl18.scales import bash43_random, qa_seeds

PAIRS = "q1\t0\t1\twho ?\tann did\nq1\t1\t0\twho ?\tnobody\nq2\t0\t1\twhen ?\tnow\nq3\t0\t0\twhy ?\tso\n"


@pytest.fixture
def real_folder():
    named = os.environ.get("ISORUN_SHARED_DATA")
    folder = Path(named) if named else Path(__file__).parents[4] / "shared" / "data"
    if not (folder / "trecqa").is_dir():
        pytest.skip("no real answer selection data beside this repository (ISORUN_SHARED_DATA)")
    return folder


def write_split(folder, text=PAIRS):
    folder.mkdir(parents=True)
    (folder / "pairs.tsv").write_text(text, encoding="utf-8")


def write_originals(folder, ids="1.2\n1.2\n7\n", labels="1\n0\n0\n"):
    folder.mkdir(parents=True)
    (folder / "id.txt").write_text(ids)
    (folder / "sim.txt").write_text(labels)
    (folder / "a.toks").write_text("who ?\nwho ?\nwhy\n")
    (folder / "b.toks").write_text("ann\u2028x did\nnobody\nso\n", encoding="utf-8")


def vector_line(word, value, width=50):
    return f"{word} " + " ".join([f"{value}"] * width) + "\n"


def test_pairs_are_read_with_their_words_split(tmp_path):
    write_split(tmp_path / "train")
    split = load_split(tmp_path / "train")
    assert split.name == "train"
    assert split.pairs[0] == AnswerPair("q1", "0", 1, ("who", "?"), ("ann", "did"))
    assert (split.questions, len(split.pairs), split.positives) == (3, 4, 2)


def test_gzipped_pairs_are_the_same_pairs(tmp_path):
    write_split(tmp_path / "plain")
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "pairs.tsv.gz").write_bytes(gzip.compress(PAIRS.encode()))
    assert load_split(tmp_path / "packed").pairs == load_split(tmp_path / "plain").pairs


def test_originals_number_the_answers_of_each_question(tmp_path):
    write_originals(tmp_path / "test")
    pairs = load_split(tmp_path / "test").pairs
    assert [(pair.qid, pair.docid, pair.label) for pair in pairs] == [("1.2", "0", 1), ("1.2", "1", 0), ("7", "0", 0)]
    assert pairs[0].question == ("who", "?")


def test_the_ids_of_wikiqa_name_their_question_first(tmp_path):
    write_originals(tmp_path / "test", ids="Q0-D0-0\nQ0-D0-1\nQ8-D5-3\n")
    assert [pair.qid for pair in load_split(tmp_path / "test").pairs] == ["Q0", "Q0", "Q8"]


@pytest.mark.parametrize(
    ("data", "ids", "splits"),
    [
        ("wikiqa", ("Q0-D0-0", "Q0-D0-1", "Q8-D5-3"), ("train", "dev", "test")),
        ("trecqa-raw", ("0", "0", "10"), ("train", "raw-dev", "raw-test")),
        ("trecqa-clean", ("32.1", "32.1", "33.2"), ("train", "clean-dev", "clean-test")),
    ],
)
def test_originals_and_their_prepared_form_are_the_same_data(tmp_path, data, ids, splits):
    first, second, third = (name.split("-")[0] for name in ids)
    prepared = f"{first}\t0\t1\twho ?\tann\u2028x did\n{second}\t1\t0\twho ?\tnobody\n{third}\t0\t0\twhy\tso\n"
    for name in splits:
        write_originals(tmp_path / "originals" / name, ids="\n".join(ids) + "\n")
        write_split(tmp_path / "prepared" / name, prepared)
    loaded = load_answers(data, "train", tmp_path / "originals")
    assert loaded == load_answers(data, "train", tmp_path / "prepared")
    assert (loaded.test.questions, len(loaded.test.pairs), loaded.test.positives) == (2, 3, 1)


def test_an_incomplete_train_all_gives_way_to_the_rebuilt_one(tmp_path):
    write_originals(tmp_path / "train-all")
    write_split(tmp_path / "train-all-rebuilt")
    assert train_all_folder(tmp_path) == tmp_path / "train-all"
    (tmp_path / "train-all" / "b.toks").unlink()
    assert train_all_folder(tmp_path) == tmp_path / "train-all-rebuilt"
    (tmp_path / "train-all-rebuilt" / "pairs.tsv").unlink()
    assert train_all_folder(tmp_path) is None


def test_originals_of_unequal_length_are_refused_with_their_counts(tmp_path):
    write_originals(tmp_path / "test", labels="1\n0\n")
    with pytest.raises(DataError, match=r"id\.txt 3, sim\.txt 2, a\.toks 3"):
        load_split(tmp_path / "test")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\t0\t2\ta\tb\n", "line 1: not a label"),
        ("q1\t0\t1\ta\tb\nq1\t1\t0\ta\n", "line 2: wrong number of fields"),
        ("", "has no pairs"),
    ],
)
def test_damaged_pairs_are_refused_naming_the_line(tmp_path, text, message):
    write_split(tmp_path / "train", text)
    with pytest.raises(DataError, match=message):
        load_split(tmp_path / "train")


def test_a_truncated_archive_is_refused_without_a_traceback_of_gzip(tmp_path):
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(PAIRS.encode() * 50)[:-20])
    with pytest.raises(DataError, match="cannot read"):
        load_split(tmp_path)


def test_a_folder_without_pairs_says_what_belongs_there(tmp_path):
    with pytest.raises(DataError, match=r"pairs\.tsv, pairs\.tsv\.gz"):
        load_split(tmp_path / "nowhere")


def test_the_clean_form_keeps_questions_with_both_labels(tmp_path):
    write_split(tmp_path / "raw-test")
    assert {pair.qid for pair in with_both_labels(load_split(tmp_path / "raw-test")).pairs} == {"q1"}


def test_the_clean_form_is_made_where_it_is_not_there_and_read_where_it_is(tmp_path):
    for name in ("train", "raw-dev", "raw-test"):
        write_split(tmp_path / name)
    write_split(tmp_path / "clean-dev", "q9\t0\t1\ta\tb\n")
    data = load_answers("trecqa-clean", "train", tmp_path)
    assert (data.test.name, data.test.questions) == ("clean-test", 1)
    assert [pair.qid for pair in data.dev.pairs] == ["q9"]


def test_train_all_is_read_from_the_originals_before_the_rebuilt_copy(tmp_path):
    for name in ("train", "raw-dev", "raw-test", "train-all-rebuilt"):
        write_split(tmp_path / name)
    assert load_answers("trecqa-raw", "train-all", tmp_path).train.name == "train-all-rebuilt"
    write_split(tmp_path / "train-all")
    assert load_answers("trecqa-raw", "train-all", tmp_path).train.name == "train-all"


def test_unknown_data_names_the_known(tmp_path):
    with pytest.raises(DataError, match=r"did you mean 'wikiqa'"):
        load_answers("wikiq", "train", tmp_path)


def test_first_questions_keeps_all_their_answers(tmp_path):
    write_split(tmp_path / "train")
    assert [pair.qid for pair in load_split(tmp_path / "train").first_questions(2).pairs] == ["q1", "q1", "q2"]


def test_npz_vectors_keep_only_the_words_asked_for(tmp_path):
    vectors = np.arange(150, dtype=np.float16).reshape(3, 50)
    np.savez(tmp_path / "some.npz", words=np.array(["a", "b", "c"]), vectors=vectors)
    found = load_word_vectors(tmp_path, {"c", "a", "z"})
    assert set(found.rows) == {"a", "c"}
    assert found.matrix.dtype == np.float32
    assert np.array_equal(found.matrix[found.rows["c"]], vectors[2])


def test_text_gzip_and_zip_give_the_same_vectors(tmp_path):
    text = vector_line("a", 0.5) + vector_line("b", -1) + vector_line("a", 9)
    for name in ("text", "gz", "zip"):
        (tmp_path / name).mkdir()
    (tmp_path / "text" / "glove.6B.50d.txt").write_text(text)
    (tmp_path / "gz" / "glove.6B.50d.txt.gz").write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "zip" / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.100d.txt", vector_line("a", 3, 100))
        archive.writestr("glove.6B.50d.txt", text)
    for name in ("text", "gz", "zip"):
        found = load_word_vectors(tmp_path / name, {"a", "z"})
        assert dict(found.rows) == {"a": 0}
        assert found.matrix.tolist() == [[0.5] * 50]


def test_vectors_of_another_width_are_refused(tmp_path):
    (tmp_path / "x.50d.txt").write_text(vector_line("a", 1, 49))
    with pytest.raises(DataError, match="49 numbers"):
        load_word_vectors(tmp_path, {"a"})


def test_pickled_objects_in_an_npz_are_never_loaded(tmp_path):
    np.savez(tmp_path / "x.npz", words=np.array([object()], dtype=object), vectors=np.zeros((1, 50)))
    with pytest.raises(DataError, match="is damaged"):
        load_word_vectors(tmp_path, {"a"})


def test_a_damaged_npz_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, words=np.array(["a"]), vectors=np.zeros((1, 50)))
    (tmp_path / "x.npz").write_bytes(buffer.getvalue()[:100])
    with pytest.raises(DataError, match="is damaged"):
        load_word_vectors(tmp_path, {"a"})


def test_a_folder_without_vectors_says_which_forms_there_are(tmp_path):
    with pytest.raises(DataError, match=r"\*50d\.txt"):
        load_word_vectors(tmp_path, {"a"})


def test_the_seeds_begin_as_bash_4_3_draws_them():
    assert qa_seeds(8)[:5] == (30462, 7764, 12710, 9385, 4917)


def test_seeds_are_distinct_and_longer_lists_begin_with_shorter_ones():
    assert len(set(qa_seeds(200))) == 200
    assert qa_seeds(500)[:200] == qa_seeds()


def test_bash_never_gives_the_same_number_twice_in_a_row():
    draws = bash43_random(42)
    values = [next(draws) for _ in range(50_000)]
    assert all(0 <= value < 32768 for value in values)
    assert all(first != second for first, second in itertools.pairwise(values))


def test_too_many_seeds_are_refused():
    with pytest.raises(InputError, match="allowed"):
        qa_seeds(40_000)


def test_the_seeds_are_those_of_the_kept_list(real_folder):
    kept = real_folder / "qa-seeds" / "seeds200-bash4.3.txt"
    assert qa_seeds() == tuple(int(line) for line in kept.read_text().split())


@pytest.mark.parametrize(
    ("data", "train", "counts"),
    [
        ("trecqa-raw", "train", ((93, 4718, 348), (81, 1148, 222), (95, 1517, 284))),
        ("trecqa-raw", "train-all", ((1229, 53417, 6403), (81, 1148, 222), (95, 1517, 284))),
        ("trecqa-clean", "train", ((93, 4718, 348), (65, 1117, 205), (68, 1442, 248))),
        ("wikiqa", "train", ((873, 8672, 1040), (126, 1130, 140), (243, 2351, 293))),
    ],
)
def test_real_data_has_the_published_counts(real_folder, data, train, counts):
    loaded = load_answers(data, train, real_folder / data.split("-")[0])
    splits = (loaded.train, loaded.dev, loaded.test)
    assert tuple((split.questions, len(split.pairs), split.positives) for split in splits) == counts


@pytest.mark.parametrize("part", ["dev", "test"])
def test_real_clean_data_are_the_raw_questions_with_both_labels(real_folder, part):
    raw, clean = (load_split(real_folder / "trecqa" / f"{form}-{part}") for form in ("raw", "clean"))
    assert with_both_labels(raw).pairs == clean.pairs
