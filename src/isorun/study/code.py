"""A version of the code: what a study file calls by a git ref, resolved to a commit when the study is read.

Cells are known by the commit, whatever the ref is called later. "." is the working copy as it is, known by the commit
below it and the hash of all that differs from that.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final

from isorun.errors import InputError, StudyError
from isorun.study.parsing import as_mapping, as_table, as_text, as_texts, shown
from isorun.worker.usercode import GIT, code_version

__all__ = [
    "WORKING_COPY",
    "Commit",
    "CommitRange",
    "code_settings",
    "commit_named",
    "commits_between",
    "git",
    "refuse_unrelated",
    "repository_of",
    "told_version",
]

WORKING_COPY: Final = "."
_SECONDS: Final = 60.0
_REFS_SHOWN: Final = 8
_RANGE: Final = "the range"


def git(folder: Path, *words: str, seconds: float | None = _SECONDS) -> subprocess.CompletedProcess[str]:
    """Ask git in a folder, whatever repository the caller is at work in.

    No hook and no monitor that a repository names is run. Filters that its settings name (LFS) are, as in any checkout
    that the user makes there: without them the files would be others.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [*GIT, *words]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**own, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", f"git: {error}")


def repository_of(folder: Path) -> Path | None:
    """The top of the repository around a folder; None where there is none, or no git."""
    asked = git(folder, "rev-parse", "--show-toplevel")
    return Path(asked.stdout.rstrip("\n")) if asked.returncode == 0 and asked.stdout.strip() else None


def code_settings(value: Any, links: Any, where: str, folder: Path) -> dict[str, Any]:
    """The version that is meant: the ref as it was written, its commit, and what is linked into its checkout.

    A commit that is given is kept as it is: so a study that was read before is the same study.
    """
    given = as_table({"ref": value} if isinstance(value, str) else as_mapping(value, where), where, _KEYS)
    ref = as_text(given.get("ref", ""), where)
    linked = _links(given.get("links", [] if links is None else links), f"{where.rpartition('.')[0]}.links", ref)
    found = {key: as_text(given[key], where) for key in ("commit", "diff") if given.get(key)}
    for key, said in found.items():
        if not _ID.fullmatch(said):  # it is a word of a command line later
            allowed = "the whole id of a commit, as isorun writes it; any name stands in ref alone"
            raise StudyError(f"{where}.{key}: that is no id", found=shown(said), allowed=allowed)
    if "commit" not in found:
        found = _resolved(ref, where, folder)
        for name in linked:
            if not (folder / name).exists():
                raise StudyError(f"{where}: there is nothing to link: {name}", found=f"looked in {folder.resolve()}")
    return {"ref": ref, **found, **({"links": linked} if linked else {})}


_KEYS: Final = ("ref", "commit", "diff", "links")
_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _links(value: Any, where: str, ref: str) -> list[str]:
    """Paths that the checkout gets from the study's folder: data that is not in the repository."""
    names = sorted(set(as_texts(value, where)))
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            allowed = "files and folders below that of the study file"
            raise StudyError(f"{where}: that cannot be linked", found=repr(name), allowed=allowed)
    if names and ref == WORKING_COPY:
        raise StudyError(f"{where}: the working copy has its files itself", hint="leave links out")
    return names


def _resolved(ref: str, where: str, folder: Path) -> dict[str, str]:
    if repository_of(folder) is None:
        found, hint = f"no repository around {folder.resolve()}", "git init, and a commit"
        raise StudyError(f"{where}: a version of the code is a git ref", found=found, hint=hint)
    if ref == WORKING_COPY:
        now = code_version(folder)
        if not now:
            raise StudyError(f"{where}: the repository has no commit yet", hint="git commit")
        return {"commit": now["commit"], **({"diff": now["diff_sha256"]} if now["dirty"] else {})}
    asked = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    commit = asked.stdout.strip()
    # Where it knows no such option, git says it again before the answer.
    commit = commit.rpartition("\n")[2]
    if asked.returncode != 0 or not commit:
        raise _no_ref(ref, where, folder)
    return {"commit": commit}


def _no_ref(ref: str, where: str, folder: Path) -> StudyError:
    listed = git(folder, "for-each-ref", "--sort=-committerdate", "--format=%(refname:short)")
    names = listed.stdout.split()
    close = difflib.get_close_matches(ref, names, n=_REFS_SHOWN, cutoff=0.5)
    shown = close or names[:_REFS_SHOWN]
    what = "names like it: " if close else ""
    return StudyError(
        f"{where}: there is no branch, tag or commit {ref!r}",
        found=f"{what}{', '.join(shown)}" if shown else "no branch and no tag",
        hint=_where_refs_are(folder) if not close else f"write {close[0]!r} if that is meant",
    )


def _where_refs_are(folder: Path) -> str:
    """A shallow clone has few commits, and no tag brings more."""
    shallow = git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"
    return f"git fetch --{'unshallow' if shallow else 'tags'} brings those of others"


def told_version(code: Mapping[str, Any]) -> str:
    """A version for people: the ref, and where it led."""
    changed = " with changes" if code.get("diff") else ""
    return f"{code['ref']} ({code['commit'][:10]}{changed})"


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
        told = {"commit": self.id, "subject": self.subject, "author": self.author, "date": self.date}
        return {**({"ref": self.ref} if self.ref else {}), **told}


_FIELDS: Final = "%H%x00%T%x00%P%x00%aI%x00%an%x00%s"


def commit_named(ref: str, where: str, folder: Path) -> Commit:
    """The commit that a ref leads to; StudyError where there is none."""
    if ref == WORKING_COPY:
        what = f"{where}: the working copy is no commit, and so lies in no range of them"
        raise StudyError(what, hint="git commit, and name HEAD")
    found = _resolved(ref, where, folder)["commit"]
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
    shallow = git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"
    if shallow:
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
        """All commits that may be meant where the result changed between two places of a row.

        One that holds the same files as the one before it changed nothing.
        """
        first, last = row[low], row[high]
        if self.changing is not None and last.id in self.changing:
            return tuple(row[low + 1 : high + 1])
        if not self.into_merges:
            return tuple(row[low + 1 : high + 1])
        own = {commit.id for commit in commits_between(self.folder, first.id, last.id)}
        trees = {commit.id: commit.tree for commit in self.known.values()}
        return tuple(
            commit
            for commit in self.everything
            if commit.id in own and commit.tree != trees.get(commit.parents[0] if commit.parents else "")
        )


def _known(folder: Path, good: Commit, everything: Sequence[Commit]) -> dict[str, Commit]:
    """All commits of the range, its good end, and where its branches began."""
    known = {commit.id: commit for commit in (good, *everything)}
    outside = {parent for commit in everything for parent in commit.parents[:1]} - set(known)
    return known | {parent: commit_named(parent, _RANGE, folder) for parent in sorted(outside)}
