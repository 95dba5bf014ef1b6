"""A version of the code: what a study file calls by a git ref, resolved to a commit when the study is read.

Cells are known by the commit, whatever the ref is called later. "." is the working copy as it is, known by the commit
below it and the hash of all that differs from that.
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from isorun.errors import StudyError
from isorun.study.parsing import as_mapping, as_table, as_text, as_texts, shown
from isorun.worker.usercode import GIT, code_version, git_variables

__all__ = [
    "WORKING_COPY",
    "code_settings",
    "git",
    "is_shallow",
    "repository_of",
    "resolved",
    "version_in_words",
]

WORKING_COPY: Final = "."
_SECONDS: Final = 60.0
_REFS_SHOWN: Final = 8


def git(folder: Path, *words: str, seconds: float | None = _SECONDS) -> subprocess.CompletedProcess[str]:
    """Ask git in a folder, whatever repository the caller is at work in.

    No hook and no monitor that a repository names is run. Filters that its settings name (LFS) are, as in any checkout
    that the user makes there: without them the files would be others.
    """
    command = [*GIT, *words]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**git_variables(), "LC_ALL": "C"},
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
        found = resolved(ref, where, folder)
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


def resolved(ref: str, where: str, folder: Path) -> dict[str, str]:
    """The commit that a ref leads to, and the hash of what differs from it in a working copy; StudyError for no ref."""
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
    if asked.returncode != 0 or not _ID.fullmatch(commit):  # "^REF" is answered, too, and means all but that
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
    return f"git fetch --{'unshallow' if is_shallow(folder) else 'tags'} brings those of others"


def is_shallow(folder: Path) -> bool:
    """Whether the history around a folder ends early."""
    return git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"


def version_in_words(code: Mapping[str, Any]) -> str:
    """A version for people: the ref, and where it led."""
    changed = " with changes" if code.get("diff") else ""
    return f"{code['ref']} ({code['commit'][:10]}{changed})"
