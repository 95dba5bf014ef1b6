"""The examples on the page for Python users run as they stand."""

import re
from pathlib import Path

import isorun
from isorun import stats

PAGE = (Path(__file__).parent.parent / "docs" / "python.md").read_text()


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) >= 5
    for example in examples:
        exec(example, names)  # our own page
    assert capsys.readouterr().out.startswith("new is better after 8 runs a side")


def test_every_question_and_its_result_are_on_the_page():
    for name in isorun.__all__:
        if name not in {"IsorunError", "Study", "Verdict", "digest", "log", "reproduce", "result"}:
            assert name in PAGE, name


def test_every_function_of_stats_is_listed_in_its_docstring():
    for name in stats.__all__:
        assert re.search(rf"\b{name}\b", stats.__doc__) or name == "Pairs", name
