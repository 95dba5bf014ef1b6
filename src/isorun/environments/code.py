"""A version of the code: a commit, checked out once in a worktree of its own, as the folder that runs work in.

The checkout lies in isorun's cache, never in the user's own folder, and stands on the user's repository. The study's
folder is the same folder within it, so that relative paths mean what they mean in the working copy. What is not in the
repository (data) is linked in from the study's folder where the study says so. Submodules are checked out as well, from
the repositories that the user's own copy has of them.

A run has a checkout for itself: runs side by side have one each, and before a run begins its checkout is made what was
committed again, whatever an earlier run changed or left in it. What the run itself does to it is told in its record.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from isorun.environments import CODE, NO_ROOM, Made
from isorun.errors import ExecutionError
from isorun.study import Environment
from isorun.study.code import git, repository_of, version_in_words
from isorun.worker.usercode import code_version

__all__ = ["Checkout", "CodeVersion", "checkout_of"]

_TREE: Final = "tree"
_BYTECODE: Final = "__pycache__"
_FILES_TOLD: Final = 3
_SAID: Final = 400
_SUBMODULE: Final = "160000 "
"""How git lists a commit of another repository among its files."""


def checkout_of(declared: Environment, working_folder: Path) -> Environment:
    """What is made for the code of an environment: known by the repository, the commit and what is linked in."""
    repository = repository_of(working_folder)
    if repository is None:
        raise ExecutionError(
            f"the code {version_in_words(declared.code)} of the environment {declared.name!r} cannot be checked out",
            found=f"no repository around {working_folder}",
            hint="run the study where its repository is",
        )
    below = working_folder.resolve().relative_to(repository.resolve()).as_posix()
    settings = {"repository": str(repository.resolve()), "below": below, **declared.code}
    settings.pop("ref")  # whatever it was called
    return replace(declared, kind=CODE, settings=settings)


@dataclass(frozen=True, slots=True)
class _State:
    """What a tree is: its commit, the committed files that are not what they were, and what is there beside them."""

    commit: str
    changed: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout that one run has for itself. version: what the record says of the code as the run began."""

    ref: str
    working_folder: Path
    version: Mapping[str, Any]
    _look: Callable[[], _State]

    def after_the_run(self) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """When the run has ended: what the record says of the code, and notes on what the run did to it."""
        now = self._look()
        moved = now.commit != self.version["commit"]
        changed = moved or (bool(now.changed) and not self.version["dirty"])
        notes = []
        if self.version["dirty"]:
            what = f"a new checkout of {self.ref} is not what was committed"
            notes.append(("checkout-changed", f"{what} ({_some(now.changed)}): filters or line ends of git do that"))
        elif changed:
            files = _some(now.changed) if now.changed else f"it is at {now.commit[:10]}"
            what = f"the run changed committed files in its checkout: {files}"
            notes.append(("checkout-changed", f"{what}; the next run begins with what was committed"))
        if now.left:
            what = f"the run left {_some(now.left)} in its checkout of {self.ref}"
            notes.append(("checkout-written", f"{what}, {self.working_folder}, where the next run removes it"))
        return {**self.version, "dirty_after": bool(changed or now.changed)}, notes


def _some(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _FILES_TOLD} more" if len(every) > _FILES_TOLD else ""
    return f"{', '.join(every[:_FILES_TOLD])}{more}"


class CodeVersion(Made):
    """A commit, checked out. `taken` gives a run a checkout of it."""

    def __init__(self, declared: Environment) -> None:
        self._declared = declared
        self._settings: dict[str, Any] = dict(declared.settings)
        self._new: dict[Path, str] = {}
        """What git's difference was when a tree was new, by its hash: filters and line ends make one."""

    def made_from(self) -> Any:
        """Nothing but the version: whatever else is declared, the checkout is the same."""
        return self._settings

    def make(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Check the commit out, and link in what the repository does not have."""
        tell(f"checking out {version_in_words(self._declared.code)}")
        self._restore(folder / _TREE)

    @contextmanager
    def taken(self) -> Iterator[Checkout]:
        """A checkout for one run alone, as it was committed; while others of this machine have theirs, one more."""
        for number in count(1):
            tree = self.folder / (_TREE if number == 1 else f"{_TREE}-{number}")
            with tree.with_name(f"{tree.name}.lock").open("a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                try:
                    yield self._checkout(tree)
                finally:  # said here: a process that is being started just now may hold a copy of the file
                    fcntl.flock(lock, fcntl.LOCK_UN)
                return

    def _checkout(self, tree: Path) -> Checkout:
        state = self._restore(tree)
        folder = tree / self._settings["below"]
        clean = {"commit": state.commit, "dirty": False, "diff_sha256": ""}
        version = code_version(folder) if state.changed else clean
        return Checkout(self._declared.code["ref"], folder, version, functools.partial(self._look, tree))

    def _restore(self, tree: Path) -> _State:
        """The tree as it was committed, with the submodules and links that belong there."""
        version, repository = version_in_words(self._declared.code), Path(self._settings["repository"])
        what = f"the code {version} of the environment {self._declared.name!r} cannot be checked out"
        hint = f"git -C {repository} worktree prune, then run again"
        _check_out(repository, self._settings["commit"], tree, what, hint, new=self._new, kept=self._kept)
        for name, commit, own in self._submodules:
            failing, next_step = (
                f"{what}: its submodule {name} at {commit[:10]}",
                f"git -C {own} fetch --all, then run again",
            )
            _check_out(own, commit, tree / name, failing, next_step, new=self._new)
        self._link(repository / self._settings["below"], tree / self._settings["below"], version)
        return self._look(tree)

    def _look(self, tree: Path) -> _State:
        own = _state(tree, self._kept)
        changed, left = list(own.changed), list(own.left)
        for name, commit, _ in self._submodules:
            below = _state(tree / name)
            changed += [f"{name}/{one}" for one in below.changed] or ([name] if below.commit != commit else [])
            left += [f"{name}/{one}" for one in below.left]
        return _State(own.commit, tuple(changed), tuple(left))

    @functools.cached_property
    def _kept(self) -> dict[str, Path]:
        """The links, as seen from the top of the tree, and where each leads."""
        below = Path(self._settings["below"])
        study = Path(self._settings["repository"]) / below
        return {(below / name).as_posix(): study / name for name in self._settings.get("links", ())}

    @functools.cached_property
    def _submodules(self) -> tuple[tuple[str, str, Path], ...]:
        return tuple(_submodules(Path(self._settings["repository"]), self._settings["commit"]))

    def _link(self, study: Path, working: Path, version: str) -> None:
        if not working.is_dir():
            what = f"the study's folder {self._settings['below']} is not in the code {version}"
            raise ExecutionError(what, hint="name a later version, or move the study file to a folder that it has")
        for name in self._settings.get("links", ()):
            link = working / name
            if link.is_symlink() and link.readlink() == study / name:
                continue
            if link.exists() or link.is_symlink():
                what = f"links: {name} cannot be linked, because the code {version} has it itself"
                raise ExecutionError(what, hint=f"take {name} out of links")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(study / name)


def _check_out(
    repository: Path,
    commit: str,
    tree: Path,
    what: str,
    hint: str,
    *,
    new: dict[Path, str],
    kept: Mapping[str, Path] = MappingProxyType({}),
) -> None:
    """A commit in a worktree of its own: one that is there is restored, or made anew. what: the error, if that fails.

    new: what trees differed in when they were new, which is kept there.
    """
    if _restored(tree, commit, kept, new.get(tree, "")):
        return
    if not (tree.is_dir() and not any(tree.iterdir())):  # of a submodule there is an empty folder
        shutil.rmtree(tree, ignore_errors=True)
    # Twice: the place may be known to git from a checkout that was killed half way, and locked by it.
    done = git(repository, "worktree", "add", "--force", "--force", "--detach", str(tree), commit, seconds=None)
    if done.returncode != 0:
        raise ExecutionError(what, found=_said(done), hint=NO_ROOM if _is_full(done.stderr) else hint)
    new[tree] = _difference(tree) if _state(tree, kept).changed else ""


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """Why git failed: the first of its complaints is the cause, and the last is only what came of it."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:]
    return "; ".join(dict.fromkeys(told))[:_SAID] or f"exit code {done.returncode}"


def _is_full(said: str) -> bool:
    return any(os.strerror(number) in said for number in (errno.ENOSPC, errno.EDQUOT))


def _restored(tree: Path, commit: str, kept: Mapping[str, Path], new: str) -> bool:
    """Whether the tree is that commit now, with nothing beside it; where it can be made so, it is.

    new: what it differed in when it was new, as a hash: only that may be changed in it.
    """
    state = _state(tree, kept)
    if not state.commit:
        return False
    if state.commit == commit and not state.changed and not state.left:
        return True
    if state.commit != commit or state.changed:
        done = git(tree, "-c", "submodule.recurse=false", "checkout", "--force", "--detach", commit, seconds=None)
        if done.returncode != 0:  # a lock that a killed git has left is one: without it nothing is ever restored
            return False
        # Bytecode is known by the second its source was written in: that of a changed source may pass for the other's.
        state = _state(tree, kept, bytecode=True)
    for name in state.left:
        _remove(tree / name)
    now = _state(tree, kept)
    if now.commit != commit or now.left:
        return False
    # What a new checkout differs in already (filters, line ends) stays so, and is told.
    return not now.changed or _difference(tree) == new


def _difference(tree: Path) -> str:
    """What all changes of committed files are known by."""
    words = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
    changes = git(tree, "diff", "HEAD", *words, seconds=None).stdout
    return hashlib.sha256(changes.encode(errors="surrogateescape")).hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _state(tree: Path, kept: Mapping[str, Path] = MappingProxyType({}), *, bytecode: bool = False) -> _State:
    """What a worktree is now; without a commit where there is none. kept: links, which belong there.

    bytecode: whether Python's own counts as left behind. Files that the repository ignores do: a training that finds
    its last checkpoint goes on with it.
    """
    asked = git(tree, "rev-parse", "--show-toplevel", "--verify", "HEAD") if tree.is_dir() else None
    words = asked.stdout.split("\n") if asked is not None and asked.returncode == 0 else []
    if len(words) < 2 or Path(words[0]) != tree.resolve():
        return _State("", (), ())
    listed = git(
        tree,
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=no",
        "--ignore-submodules=all",
        seconds=None,
    )
    beside = git(tree, "ls-files", "--others", "--directory", "-z", seconds=None)
    if listed.returncode != 0 or beside.returncode != 0:
        return _State("", (), ())
    changed = tuple(entry[3:] for entry in listed.stdout.split("\0") if entry)
    return _State(words[1], changed, tuple(_left(tree, filter(None, beside.stdout.split("\0")), kept, bytecode)))


def _left(tree: Path, names: Iterable[str], kept: Mapping[str, Path], bytecode: bool) -> Iterator[str]:
    for entry in names:
        name = entry.rstrip("/")
        path = tree / name
        if name in kept and path.is_symlink() and path.readlink() == kept[name]:
            continue
        if name.rpartition("/")[2] == _BYTECODE and not bytecode:
            continue
        is_around = any(link.startswith(f"{name}/") for link in kept)
        if is_around and path.is_dir() and not path.is_symlink():
            yield from _left(tree, sorted(f"{name}/{below.name}" for below in path.iterdir()), kept, bytecode)
        else:
            yield name


def _submodules(own: Path, commit: str) -> Iterator[tuple[str, str, Path]]:
    """The submodules that the user's own copy has, each from there: nothing is fetched from where a repository says."""
    for entry in git(own, "ls-tree", "-r", "-z", "--full-tree", commit, seconds=None).stdout.split("\0"):
        settings, _, name = entry.partition("\t")
        if not settings.startswith(_SUBMODULE) or not (own / name / ".git").exists():
            continue  # what is not there for the user is not there for the training either
        below = settings.split()[2]
        yield name, below, own / name
        for inner, inner_commit, inner_own in _submodules(own / name, below):
            yield f"{name}/{inner}", inner_commit, inner_own
