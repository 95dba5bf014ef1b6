"""What git says of a range of commits."""

import random

import pytest

from git_history import git, history
from isorun.errors import InputError, StudyError
from isorun.study.history import CommitRange, commit_named

VERSIONS = ["a = 1\n", "a = 2\n", "a = 3\n"]


def range_of(text, folder):
    return CommitRange.of(text, folder, first_parent=False, paths=())


@pytest.mark.parametrize(
    ("commits", "said", "hint"),
    [
        ("c1", "a range of commits is needed", ""),
        ("..c1", "a range of commits is needed", ""),
        ("c1...c2", "a range of commits is needed", ""),
        ("c1..c1", "one commit", "GOOD"),
        ("c3..c1", "no ancestor", "c1..c3"),
        ("c1..nowhere", "no branch, tag or commit 'nowhere'", ""),
        ("c1..mian", "no branch, tag or commit 'mian'", "main"),
        ("c1...", "working copy|range of commits", ""),
        ("other..main", "no ancestor", "two refs"),
        ("--all..main", "no branch, tag or commit", ""),
        ("^main..main", r"no branch, tag or commit '\^main'", "main"),
    ],
)
def test_a_range_that_is_none_is_refused_with_the_next_step(tmp_path, commits, said, hint):
    folder = history(tmp_path, VERSIONS)
    git(folder, "checkout", "--orphan", "other")
    git(folder, "commit", "-m", "apart")
    with pytest.raises((InputError, StudyError), match=said) as refused:
        range_of(commits, folder)
    assert hint in refused.value.hint


def test_a_shallow_clone_says_how_to_get_the_rest(tmp_path):
    origin = history(tmp_path / "origin", [*VERSIONS, *VERSIONS])
    git(tmp_path, "clone", "--depth", "2", f"file://{origin}", "shallow")
    with pytest.raises(StudyError) as refused:
        range_of(f"{git(origin, 'rev-parse', 'c2')}..main", tmp_path / "shallow")
    assert "--unshallow" in refused.value.hint


def test_subjects_of_any_kind_are_told_as_they_are(tmp_path):
    folder = history(tmp_path, VERSIONS)
    git(folder, "commit", "--allow-empty", "--allow-empty-message", "-m", "")
    git(folder, "commit", "--allow-empty", "-m", "tab\tand ünicode")
    assert commit_named("HEAD~1", "x", folder).subject == ""
    assert commit_named("HEAD", "x", folder).subject == "tab\tand ünicode"


def test_what_may_be_meant_between_two_commits_is_what_git_says_lies_between_them(tmp_path):
    """Merges of branches that began before the range, inside of it and in one another."""
    folder, draw = history(tmp_path, VERSIONS), random.Random(3)
    tips = ["main"]
    for number in range(12):
        name = f"side{number}"
        git(folder, "checkout", "-q", "-b", name, draw.choice(["c1", "c2", *tips]))
        (folder / name).write_text(name)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", name)
        tips.append(name)
        git(folder, "checkout", "-q", "main")
        if number % 2:
            git(folder, "merge", "-q", "--no-ff", "-m", f"merge {name}", name)
    found = range_of("c2..main", folder)
    rows = [found.row, *(row for commit in found.everything for row in found.brought_in(commit))]
    everything = {commit.id for commit in found.everything}
    assert len(rows) > 5
    for row in rows:
        for low, high in ((0, 1), (0, len(row) - 1), (len(row) - 2, len(row) - 1)):
            between = git(folder, "rev-list", f"{row[low].id}..{row[high].id}").split()
            assert {commit.id for commit in found.meant(row, low, high)} == everything & set(between)
