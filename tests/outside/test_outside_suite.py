"""The suite of outside programs: what is declared, how it is judged, what the page says."""

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from isorun.errors import InputError

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))  # a package of the checkout, not of the distribution

from outside import judging, made_data, page, programs, run  # noqa: E402

ENTRY = {
    "name": "one",
    "environment": "torch",
    "command": "python train.py --say 'two words'",
    "why": "to be parsed",
    "metrics": [{"name": "(test_)?acc", "direction": "higher", "line": r"acc (?P<value>[\d.]+)"}],
}


def parsed(**changes):
    return programs.parse_program({**ENTRY, **changes}, {}, "here")


def seen(values=None, *, state="finished", digest="", series=None):
    digests = {"weights.final": digest} if digest else {}
    return judging.Seen(state, "it broke", values or {}, series or {}, digests)


def test_all_declared_programs_are_read():
    declared = programs.read_programs()
    assert len(declared) >= 40
    assert all(len(program.commit) == 40 for program in declared.values() if program.git)


def test_a_command_is_split_as_a_shell_would():
    assert parsed().words == ["python", "train.py", "--say", "two words"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"comand": "x"}, "unknown key"),
        ({"environment": "fortran"}, "environment"),
        ({"git": "https://example.org/a/b"}, "fixed commit"),
        ({"metrics": []}, "metrics, or why there are none"),
        ({"repository": "none"}, "no such repository"),
        ({"metrics": [{"name": "a", "direction": "up", "line": "a"}]}, "direction"),
        ({"metrics": [{"name": "a", "direction": "higher"}]}, "where its value is known from"),
        ({"metrics": [{"name": "a", "direction": "higher", "column": "a"}]}, "where its value is known from"),
        ({"metrics": [{"name": "(", "direction": "higher", "line": "a"}]}, "not a pattern"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused(changes, said):
    with pytest.raises(InputError, match=said):
        parsed(**changes)


def truth(**changes):
    return programs.Truth(**{"name": "acc", "direction": "higher", **changes})


def test_the_true_value_is_the_last_that_the_program_told(tmp_path):
    output = "acc 0.5\nacc 0.75 hits 3/4\n"
    assert judging.true_value(truth(line=r"acc (?P<value>[\d.]+)"), output, tmp_path) == 0.75
    assert judging.true_value(truth(line=r"hits (?P<hits>\d+)/(?P<of>\d+)"), output, tmp_path) == 0.75
    assert judging.true_value(truth(line=r"loss (?P<value>[\d.]+)"), output, tmp_path) is None


def test_the_true_value_may_stand_in_a_file(tmp_path):
    (tmp_path / "all.json").write_text('{"acc": 0.5}')
    (tmp_path / "all.csv").write_text("epoch,acc\n0,0.25\n1,0.5\n2,\n")
    (tmp_path / "all.txt").write_text("acc 0.5")
    forms = [{"key": "acc", "file": "*.json"}, {"column": "acc", "file": "*.csv"}]
    for form in [*forms, {"line": "acc (?P<value>.*)", "file": "*.txt"}]:
        assert judging.true_value(truth(**form), "", tmp_path) == 0.5
        assert judging.true_value(truth(**form), "", tmp_path / "elsewhere") is None


def test_values_are_right_wrong_or_missed():
    program = parsed()
    name = program.metrics[0].name
    assert judging.judge_metrics(program, seen({"test_acc": 0.75}), {name: 0.75}).held
    wrong = judging.judge_metrics(program, seen({"acc": 0.74}), {name: 0.75})
    assert (wrong.held, wrong.said) == (False, "wrong: acc 0.74 for 0.75")
    missed = judging.judge_metrics(program, seen({"loss": 0.75}), {name: 0.75})
    assert (missed.held, missed.said) == (False, "missed: (test_)?acc 0.75")
    assert judging.beyond(program, seen({"acc": 1, "lr": 2})) == ["lr"]


def test_a_percentage_may_be_told_as_a_fraction_only_where_that_is_declared():
    assert judging.same_value(0.75, 75.0, truth(line="", percent=True))
    assert not judging.same_value(0.75, 75.0, truth(line=""))
    assert judging.same_value(float("nan"), float("nan"), truth(line=""))


def test_a_program_that_tells_nothing_must_not_be_given_a_metric():
    silent = parsed(metrics=[], silent="it prints nothing")
    assert judging.judge_metrics(silent, seen(), {}).held
    assert judging.judge_metrics(silent, seen({"lr": 1.0}), {}).held is False


def test_identical_is_proven_by_weights_else_said_of_values():
    program = parsed()
    pair = [seen({"acc": 1.0}, digest="a"), seen({"acc": 1.0}, digest="a")]
    assert judging.judge_identical(program, pair).said == "same weights"
    assert judging.judge_identical(program, [seen({"acc": 1.0})] * 2).said == "same values"
    assert judging.judge_identical(program, [pair[0], seen({"acc": 1.0}, digest="b")]).held is False
    series = [seen({"acc": 1.0}, series={"acc": [0.1, 1.0]}), seen({"acc": 1.0}, series={"acc": [0.2, 1.0]})]
    assert judging.judge_identical(program, series).said == "acc differ"
    broken = judging.judge_identical(program, [pair[0], seen(state="failed")])
    assert (broken.held, broken.said) == (False, "1 of 2 finished: it broke")
    assert judging.judge_identical(program, [seen()] * 2).held is None, "nothing to compare is no proof"


def test_a_program_that_fails_by_itself_is_not_held_against_isorun():
    assert judging.judge_first_try(0, [seen()], "").held
    assert judging.judge_first_try(1, [seen(state="failed")], "").held is False
    assert judging.judge_first_try(1, [seen(state="failed")], "ImportError: x").held is None


def test_the_direction_is_that_of_the_metric_chosen():
    program = parsed()
    chosen = {"metrics": [{"name": "acc", "direction": "higher"}]}
    assert judging.judge_direction(program, chosen).held
    chosen["metrics"][0]["direction"] = None
    assert judging.judge_direction(program, chosen).held is False
    assert judging.judge_direction(program, {"metrics": [{"name": "lr", "direction": "lower"}]}).said == "judged by lr"
    assert judging.judge_direction(program, {}).held is False


def test_every_program_is_a_row_of_the_page():
    judged = {"first try": judging.Judgement(False, "a | b").to_json()}
    kept = {"one": {"judgements": judged, "date": "2026-01-01", "machine": "a machine", "beyond": ["lr"]}}
    text = page.written({"one": parsed(), "two": parsed(name="two")}, kept)
    assert "| one | to be parsed | **no** |" in text
    assert "| two | to be parsed | – |" in text
    assert "- **one**: first try: a \\| b" in text
    assert "- **two**: first try: not run" in text
    assert "first try 0 of 1" in text


def test_the_page_is_what_the_results_say():
    kept = json.loads((ROOT / "outside" / "results.json").read_text())
    made = page.written(programs.read_programs(), kept)
    assert (ROOT / "docs" / "outside.md").read_text() == made, "run: python -m outside.run --page"


def test_a_name_that_is_not_declared_is_refused(capsys):
    assert run.main(["--only", "no-such-program"]) == 1
    assert "no such program" in capsys.readouterr().err


def test_resume_takes_what_has_no_result_or_was_declared_anew():
    declared = {"one": parsed(), "two": parsed(name="two")}
    kept = {"one": {"declared": run._digest(declared["one"])}, "two": {"declared": "other"}}
    assert [each.name for each in run._chosen(declared, [], kept)] == ["two"]


def test_made_data_have_the_form_that_programs_read(tmp_path):
    done = subprocess.run([sys.executable, made_data.__file__, "mnist", tmp_path / "raw", "20", "10"], check=False)
    assert done.returncode == 0
    content = (tmp_path / "raw" / "train-images-idx3-ubyte").read_bytes()
    assert struct.unpack(">IIII", content[:16]) == (2051, 20, 28, 28)
    assert len(content) == 16 + 20 * 28 * 28
    made_data.pictures(tmp_path / "pictures", "2", "1", "8", "train")
    png = (tmp_path / "pictures" / "train" / "class_1" / "1_000.png").read_bytes()
    start = png.index(b"IDAT") + 4
    assert len(zlib.decompress(png[start:])) == 8 * (1 + 3 * 8)


def test_every_preparation_is_a_kind_that_is_made():
    asked = {words[0] for program in programs.read_programs().values() for words in program.prepare}
    assert asked <= set(made_data.KINDS)
