"""The report in a terminal."""

import re

import pytest

from isorun.analysis.studies.study_result import analyse_study
from isorun.report import Column, Table, terminal
from isorun.study.cells import Level
from isorun.study.design import Approach
from record_builder import make_cell, make_record, make_study

ESCAPE = re.compile(r"\x1b\[\d+m")


def test_the_verdict_comes_first_then_tables_then_warnings(troubled):
    text = terminal.render(troubled, colour=False, width=80)
    assert text.startswith("LeNet: the largest difference in test_acc between two runs is 88 points by")
    places = [text.index(part) for part in ("test_acc: spread between runs", "Identical runs", "[metric-chosen]")]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_is_wider_than_the_terminal(any_result, width):
    for line in terminal.render(any_result, colour=False, width=width).splitlines():
        assert len(line) <= width or " " not in line.strip(), line


def test_without_colour_there_are_no_escape_codes(any_result):
    assert "\x1b" not in terminal.render(any_result, colour=False, width=80)


def test_colour_changes_nothing_but_escape_codes(any_result):
    coloured = terminal.render(any_result, colour=True, width=80)
    assert ESCAPE.search(coloured)
    assert ESCAPE.sub("", coloured) == terminal.render(any_result, colour=False, width=80)


def test_names_cannot_steer_the_terminal(hostile):
    text = terminal.render(hostile, colour=False, width=80)
    assert "\N{REPLACEMENT CHARACTER}[31m" in text


def test_every_warning_is_numbered_and_has_a_next_step(troubled):
    text = terminal.render(troubled, colour=False, width=80)
    numbers = re.findall(r"^(\d+)\. \[[a-z-]+\]", text, re.M)
    assert numbers == [str(number) for number in range(1, len(troubled.conditions) + 1)]
    assert text.count("   next: ") == len(troubled.conditions)


def test_the_first_look_fits_a_screen_and_names_what_it_leaves_out(sound):
    text = terminal.render(sound, colour=False, width=80)
    assert len(text.splitlines()) < 50 < len(terminal.render(sound, colour=False, width=80, full=True).splitlines())
    assert "test_acc: spread between runs" in text
    assert "Identical runs" in text
    assert "best-accuracy" not in text.partition("With --full")[0]
    assert "Seconds to the epoch judged" in text.partition("With --full")[2]


def test_of_many_groups_a_first_look_has_sentences_on_the_first_and_the_table_of_all():
    names = [f"net-{place:02d}" for place in range(14)]
    study = make_study(
        levels=(Level.DEFAULT,), approaches={name: Approach(name, ("python", "train.py")) for name in names}
    )
    records = [
        make_record(make_cell(repeat=repeat, approach=name), results={"test_acc": 0.9 + 0.001 * place + 0.01 * repeat})
        for place, name in enumerate(names)
        for repeat in range(2)
    ]
    result = analyse_study(study, records)
    first, full = (terminal.render(result, colour=False, width=80, full=full) for full in (False, True))
    assert "net-05 at level default: test_acc" in first
    assert "net-06 at level default: test_acc" not in first
    assert "8 more groups are in the table; --full has a sentence on each." in first
    assert re.search(r"^  net-13 +2 ", first, re.MULTILINE)
    assert "net-13 at level default: test_acc" in full


def test_full_shows_every_table_that_a_first_look_names(sound):
    first = " ".join(terminal.render(sound, colour=False, width=80).partition("With --full: ")[2].split())
    titles = re.findall(r"([^;.]+?) \(\d+ rows?\)", first.partition(". ")[0] + ".")
    full = " ".join(terminal.render(sound, colour=False, width=80, full=True).split())
    assert "Every finished run" in [title.strip() for title in titles]
    assert [title for title in titles if title.strip() not in full] == []
    assert "Not shown here" not in full


def test_a_first_look_shows_what_failed_and_every_warning(troubled):
    text = " ".join(terminal.render(troubled, colour=False, width=80).split())
    assert "CUDA out of memory" in text
    assert all(f"[{condition.code}]" in text for condition in troubled.conditions)


def test_weak_runs_are_in_one_table_and_out_of_the_other(troubled):
    text = terminal.render(troubled, colour=False, width=80, full=True)
    assert "test_acc: spread between runs, without weak runs" in text
    assert "Weak runs: 2 of 7 (LeNet at level default)" in " ".join(text.split())


def test_noise_of_the_test_set_is_told_in_one_sentence(troubled):
    text = " ".join(terminal.render(troubled, colour=False, width=80, full=True).split())
    assert "would remain on an unlimited test set" in text


def test_the_widest_gap_is_held_against_chance(troubled):
    text = " ".join(terminal.render(troubled, colour=False, width=80, full=True).split())
    assert "on average with 1 example," in text


def test_tables_left_out_are_named(sound, monkeypatch):
    monkeypatch.setattr(terminal, "_MOST_ROWS", 20)
    text = " ".join(terminal.render(sound, colour=False, width=80, full=True).split())
    named = text.partition("Not shown here, but in the HTML, Markdown, LaTeX and JSON reports: ")[2]
    assert named.startswith("Every finished run (24 rows)")


def test_a_wide_table_is_continued_below_with_its_keys():
    columns = (Column("name", key=True), *(Column(f"column{number}", "s", "group") for number in range(12)))
    table = Table("wide", "Wide", columns, (("row", *("123456",) * 12),))
    lines = terminal.render_table(table, colour=False, width=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith("  row ") for line in lines) == 4
    assert sum(line.count("123456") for line in lines) == 12


def test_keys_move_above_their_rows_where_that_saves_a_second_block():
    columns = (Column("approach", key=True), Column("level", key=True), *(Column("number") for _ in range(4)))
    rows = [(approach, level, *("1.23456",) * 4) for approach in ("first", "second") for level in ("a", "b")]
    lines = terminal.render_table(Table("t", "T", columns, tuple(rows)), colour=False, width=45).splitlines()
    assert [line.split()[0] for line in lines[3:]] == ["first", "a", "b", "second", "a", "b"]


def test_the_name_of_a_group_has_room_above_narrow_columns_and_short_headings_stand_below():
    columns = (Column("k", key=True), Column("a b", group="a long name"), Column("n"))
    shown = terminal.render_table(Table("t", "T", columns, (("x", "1", "2"),)), colour=False, width=40).splitlines()
    assert "a long name" in shown[1]
    assert shown[2].split() == ["a", "b"] or shown[2].split() == ["k", "a", "b", "n"]
    columns = (Column("k", key=True), Column("two words"), Column("n"))
    shown = terminal.render_table(Table("t", "T", columns, (("x", "1", "2"),)), colour=False, width=40).splitlines()
    assert [line.split() for line in shown[1:3]] == [["two"], ["k", "words", "n"]]


def test_wide_characters_keep_columns_straight():
    table = Table("t", "T", (Column("name", key=True), Column("n")), (("学習", "1"), ("abcd", "2")))
    assert terminal.render_table(table, colour=False, width=80).splitlines()[-2:] == ["  学習  1", "  abcd  2"]


def test_long_names_are_wrapped_rather_than_cut():
    name = "a_very_long_approach_name_that_never_ends_" * 3
    table = Table("t", "T", (Column("name", key=True), Column("other", key=True), Column("n")), ((name, name, "1"),))
    lines = terminal.render_table(table, colour=False, width=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert "".join(line[2:14].strip() for line in lines[3:]).startswith(name[:30])


def test_what_is_copied_from_a_terminal_stays_on_one_line():
    name = "0123456789abcdef-1"
    columns = (Column("run", key=True, unbroken=True), Column("reason", key=True), Column("log", key=True))
    table = Table("t", "T", columns, ((name, "exit code 1: " * 4, "no such file or directory " * 3),))
    lines = terminal.render_table(table, colour=False, width=50).splitlines()
    assert any(line.split()[:1] == [name] for line in lines)
