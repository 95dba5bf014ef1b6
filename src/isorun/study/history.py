"""What git says of a range of commits: which there are, which of them merges brought in, which may be meant.

A range is asked of git once. What it then says of its commits follows from what they are children of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from isorun.errors import InputError, StudyError
from isorun.study.code import WORKING_COPY, git, is_shallow, resolved

__all__ = ["Commit", "CommitRange", "commit_named", "commits_between", "refuse_unrelated"]

_RANGE: Final = "the range"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit. tree: what all its files are known by: commits with the same one hold the very same files.

    date: when its author wrote it. ref: what it was called by whoever asked for it.
    """

    id: str
    tree: str
    parents: tuple[str, ...]
    date: str
    author: str
    subject: str
    ref: str = ""

    @property
    def short(self) -> str:
        """Its id as people write it."""
        return self.id[:12]

    def to_json(self) -> dict[str, str]:
        """Plain JSON."""
        known = {"commit": self.id, "subject": self.subject, "author": self.author, "date": self.date}
        return {**({"ref": self.ref} if self.ref else {}), **known}


_FIELDS: Final = "%H%x00%T%x00%P%x00%aI%x00%an%x00%s"


def commit_named(ref: str, where: str, folder: Path) -> Commit:
    """The commit that a ref leads to; StudyError where there is none."""
    if ref == WORKING_COPY:
        what = f"{where}: the working copy is no commit, and so lies in no range of them"
        raise StudyError(what, hint="git commit, and name HEAD")
    found = resolved(ref, where, folder)["commit"]
    (commit,) = _log(folder, "--no-walk", found)
    return replace(commit, ref=ref)


def commits_between(
    folder: Path, good: str, bad: str, *, first_parent: bool = False, paths: Sequence[str] = ()
) -> list[Commit]:
    """The commits that the one leads to and the other does not, oldest first.

    first_parent: only those that the branch itself went through, a merge in place of what it brought in. paths: only
    those that changed one of these files or folders.
    """
    words = ("--first-parent",) if first_parent else ()
    return _log(folder, "--reverse", "--topo-order", *words, f"{good}..{bad}", "--", *paths)


def refuse_unrelated(good: Commit, bad: Commit, folder: Path) -> None:
    """An error where the one does not lead to the other: nothing between them could be searched."""
    if git(folder, "merge-base", "--is-ancestor", good.id, bad.id).returncode == 0:
        return
    what = f"{good.ref or good.short} is no ancestor of {bad.ref or bad.short}"
    if git(folder, "merge-base", "--is-ancestor", bad.id, good.id).returncode == 0:
        raise StudyError(what, found="it is the other way round", hint=f"{bad.ref}..{good.ref}")
    base = git(folder, "merge-base", good.id, bad.id).stdout.strip()
    if is_shallow(folder):
        raise StudyError(what, found="a shallow clone, whose history ends early", hint="git fetch --unshallow")
    hint = f"{base[:12]}..{bad.ref}: {base[:12]} is where they part" if base else "two refs of one history"
    raise StudyError(what, found="two branches" if base else "histories that share no commit", hint=hint)


def _log(folder: Path, *words: str) -> list[Commit]:
    # A repository's own settings may ask for signatures, which takes a program that they name.
    asked = git(folder, "log", "--no-show-signature", "-z", f"--format={_FIELDS}", *words)
    if asked.returncode != 0:
        raise StudyError("the history cannot be read", found=asked.stderr.strip()[-300:], hint="git log says more")
    parts = asked.stdout.removesuffix("\0").split("\0") if asked.stdout else []
    rows = [parts[start : start + 6] for start in range(0, len(parts), 6)]
    return [Commit(row[0], row[1], tuple(row[2].split()), *row[3:6]) for row in rows if len(row) == 6]


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits of a range. row: the good end, and those that may be meant, the bad end last.

    everything: all that the range holds, those that merges brought in as well. alike: how many were left out of the row
    because they hold the same files as the one before. known: by id, all commits that may come to be run. into_merges:
    whether what a merge brought in may be meant. changing: those that change the files that were named, if some were.
    """

    folder: Path
    good: Commit
    bad: Commit
    row: tuple[Commit, ...]
    everything: tuple[Commit, ...]
    alike: int
    known: Mapping[str, Commit]
    into_merges: bool
    changing: frozenset[str] | None

    @classmethod
    def of(cls, text: str, folder: Path, *, first_parent: bool, paths: Sequence[str]) -> CommitRange:
        """The range that GOOD..BAD names."""
        first, dots, last = text.partition("..")
        if not dots or not first or last.startswith("."):
            raise InputError(
                "a range of commits is needed", found=repr(text), allowed="GOOD..BAD, or GOOD.. up to HEAD"
            )
        good, bad = commit_named(first, _RANGE, folder), commit_named(last or "HEAD", _RANGE, folder)
        if good.id == bad.id:
            raise InputError("both ends of the range are one commit", found=good.short, hint="name an earlier GOOD")
        refuse_unrelated(good, bad, folder)
        everything = commits_between(folder, good.id, bad.id)
        chain = commits_between(folder, good.id, bad.id, first_parent=True, paths=paths)
        if not chain:
            raise InputError("no commit of the range changes these files", found=", ".join(paths))
        changing = frozenset(commit.id for commit in chain) if paths else None
        if chain[-1].id != bad.id:  # what follows the last change of the files is compared, too
            chain.append(bad)
        chain[-1] = replace(chain[-1], ref=bad.ref)
        row = [good]
        row += [commit for before, commit in pairwise((good, *chain)) if commit.tree != before.tree]
        row = row if len(row) > 1 else [good, bad]
        alike = len(chain) + 1 - len(row)
        known = _known(folder, good, everything)
        return cls(folder, good, bad, tuple(row), tuple(everything), alike, known, not first_parent, changing)

    def brought_in(self, merge: Commit) -> Iterator[tuple[Commit, ...]]:
        """Of each branch that a merge brought in, the commit it began at and its own commits."""
        main = merge.parents[0] if merge.parents else ""
        for tip in merge.parents[1:]:
            own = [commit for commit in commits_between(self.folder, main, tip, first_parent=True) if commit.parents]
            if own and own[0].parents[0] in self.known:
                yield (self.known[own[0].parents[0]], *own)

    def meant(self, row: Sequence[Commit], low: int, high: int) -> tuple[Commit, ...]:
        """All commits that may be meant where the result changed between two positions of a row.

        One that holds the same files as the one before it changed nothing.
        """
        first, last = row[low], row[high]
        if self.changing is not None and last.id in self.changing:
            return tuple(row[low + 1 : high + 1])
        if not self.into_merges:
            return tuple(row[low + 1 : high + 1])
        own = self._leading_to(last) - self._leading_to(first)
        trees = {commit.id: commit.tree for commit in self.known.values()}
        return tuple(
            commit
            for commit in self.everything
            if commit.id in own and commit.tree != trees.get(commit.parents[0] if commit.parents else "")
        )

    def _leading_to(self, commit: Commit) -> set[str]:
        """Those of the range that lead to a commit, and itself."""
        found: set[str] = set()
        open_ids = [commit.id]
        while open_ids:
            one = open_ids.pop()
            if one in self.known and one not in found:
                found.add(one)
                open_ids += self.known[one].parents
        return found


def _known(folder: Path, good: Commit, everything: Sequence[Commit]) -> dict[str, Commit]:
    """All commits of the range, its good end, and where its branches began."""
    known = {commit.id: commit for commit in (good, *everything)}
    outside = {parent for commit in everything for parent in commit.parents[:1]} - set(known)
    return known | {parent: commit_named(parent, _RANGE, folder) for parent in sorted(outside)}
