"""A version of the code: a commit, checked out once in a worktree of its own, as the folder that runs work in.

The checkout lies in isorun's cache, never in the user's own folder, and stands on the user's repository. The study's
folder is the same folder within it, so that relative paths mean what they mean in the working copy. What is not in the
repository (data) is linked in from the study's folder where the study says so. Submodules are checked out as well, from
the repositories that the user's own copy has of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from isorun.environments import CODE, Made
from isorun.errors import ExecutionError
from isorun.study import Environment
from isorun.study.code import git, repository_of, told_version

__all__ = ["Checkout", "checkout_of"]

_TREE: Final = "tree"
_SUBMODULE: Final = "160000 "
"""How git lists a commit of another repository among its files."""


def checkout_of(declared: Environment, working_folder: Path) -> Environment:
    """What is made for the code of an environment: known by the repository, the commit and what is linked in."""
    repository = repository_of(working_folder)
    if repository is None:
        raise ExecutionError(
            f"the code {told_version(declared.code)} of the environment {declared.name!r} cannot be checked out",
            found=f"no repository around {working_folder}",
            hint="run the study where its repository is",
        )
    below = working_folder.resolve().relative_to(repository.resolve()).as_posix()
    settings = {"repository": str(repository.resolve()), "below": below, **declared.code}
    settings.pop("ref")  # whatever it was called
    return replace(declared, kind=CODE, settings=settings)


class Checkout(Made):
    """A commit, checked out. `working_folder` is where runs work in it."""

    def __init__(self, declared: Environment) -> None:
        self._declared = declared
        self._settings: dict[str, Any] = dict(declared.settings)

    def made_from(self) -> Any:
        """Nothing but the version: whatever else is declared, the checkout is the same."""
        return self._settings

    @property
    def working_folder(self) -> Path:
        """The study's folder in the checkout."""
        return self.folder / _TREE / str(self._settings["below"])

    def make(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Check the commit out, and link in what the repository does not have."""
        version = told_version(self._declared.code)
        tell(f"checking out {version}")
        repository, tree = Path(self._settings["repository"]), folder / _TREE
        what = f"the code {version} of the environment {self._declared.name!r} cannot be checked out"
        _check_out(
            repository, self._settings["commit"], tree, what, f"git -C {repository} worktree prune, then run again"
        )
        _check_out_submodules(repository, tree, what)
        self.folder = folder
        self._link(repository / self._settings["below"], version)

    def _link(self, study: Path, version: str) -> None:
        if not self.working_folder.is_dir():
            what = f"the study's folder {self._settings['below']} is not in the code {version}"
            raise ExecutionError(what, hint="name a later version, or move the study file to a folder that it has")
        for name in self._settings.get("links", ()):
            place = self.working_folder / name
            if place.exists() or place.is_symlink():
                what = f"links: {name} cannot be linked, because the code {version} has it itself"
                raise ExecutionError(what, hint=f"take {name} out of links")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(study / name)


def _check_out(repository: Path, commit: str, tree: Path, what: str, hint: str) -> None:
    """A commit in a worktree of its own. what: the error, if that fails."""
    # Twice: the place may be known to git from a checkout that was killed half way, and locked by it.
    done = git(repository, "worktree", "add", "--force", "--force", "--detach", str(tree), commit, seconds=None)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ExecutionError(what, found=said[-1], hint=hint)


def _check_out_submodules(own: Path, tree: Path, what: str) -> None:
    """The submodules that the user's own copy has, each from there: nothing is fetched from where a repository says."""
    for entry in git(tree, "ls-files", "--stage", "-z").stdout.split("\0"):
        settings, _, name = entry.partition("\t")
        if not settings.startswith(_SUBMODULE) or not (own / name / ".git").exists():
            continue  # what is not there for the user is not there for the training either
        commit, hint = settings.split()[1], f"git -C {own / name} fetch --all, then run again"
        _check_out(own / name, commit, tree / name, f"{what}: its submodule {name} at {commit[:10]}", hint)
        _check_out_submodules(own / name, tree / name, what)
