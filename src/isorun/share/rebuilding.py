"""The code of a package, put into a folder of its own: git's commit with the difference to it, or the files themselves.

Whoever made a package may be an enemy, and every path in it is a text of his. A path is looked at before anything is
written to it: it stays below the folder, goes through no link, names no device and nothing of git's own. Nothing is
executed here. A difference is applied by git itself, after its paths were looked at; one that makes links is refused.
What was put there is then held against what the runs recorded: the commit, and the digest of every file that they were
made of.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from isorun.errors import InputError, PackageError
from isorun.packages import refused
from isorun.packages.reading import CODE, Package
from isorun.study.code import git, repository_of
from isorun.worker.usercode import GIT, UNKNOWN, code_version, git_variables, hash_of_file

__all__ = [
    "KeptCode",
    "PutCode",
    "checked_path",
    "code_in",
    "compared_files",
    "file_digest",
    "put_code",
    "recorded_code",
    "safe_target",
]

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?", re.IGNORECASE)
_OF_GIT: Final = re.compile(r"\.git|git~\d+|\.gitmodules", re.IGNORECASE)
_MODES: Final = re.compile(
    rb"^(?:(?:new file|deleted file|new|old) mode ([^\r\n]*)|index \S+ ([^\r\n]*))\r?$", re.MULTILINE
)
"""All that stands where a mode does: git reads more numbers than it writes (`0120000`, ` 120000`)."""
_PLAIN: Final = (b"100644", b"100755")
_LONGEST: Final = 400
_MOST_PARTS: Final = 40
_SECONDS: Final = 600.0
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class PutCode:
    """Code that was put into a folder. working: the folder of the study in it. differs: files that are not as recorded.

    commit: empty where the files alone were put there. missing: files that the runs were made of and that are lacking.
    """

    working: Path
    commit: str
    differs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Version:
    """A version of the code. difference: the member that has what was not committed; empty where all was."""

    commit: str
    difference: str
    remote: str


def checked_path(path: Any) -> PurePosixPath:
    """A path of a package, as it may be written to below a folder; PackageError for every other.

    Letters that cannot be printed are in none: some file systems leave them out, so that `.git` would be `.git` there
    with one between its letters.
    """
    if not isinstance(path, str) or not path or len(path) > _LONGEST or "\\" in path or not path.isprintable():
        raise _no_path(path, "no plain text")
    parts = path.split("/")
    if len(parts) > _MOST_PARTS or any(part in {"", ".", ".."} for part in parts):
        raise _no_path(path, "it is absolute, leads upwards, or has an empty part")
    for part in parts:
        if _OF_GIT.fullmatch(part.rstrip(" .")):
            raise _no_path(path, "that is git's own")
        if _DEVICE.fullmatch(part.rstrip(" .")) or part[-1] in " ." or ":" in part:
            raise _no_path(path, "that is a device, or another file, on some systems")
    return PurePosixPath(path)


def _no_path(path: Any, why: str) -> PackageError:
    return refused("a path in the package cannot be written to", f"{str(path)[:80]!r}: {why}", "paths below a folder")


def safe_target(folder: Path, path: PurePosixPath) -> Path:
    """Where a checked path lies below the folder; PackageError where the way there goes through a link, or ends at one.

    Folders on the way are made.
    """
    place = folder
    for part in path.parts[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise _no_path(path, f"{place.relative_to(folder)} is no folder but a link or a file")
        place.mkdir(exist_ok=True)
    target = place / path.name
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise _no_path(path, "there is a link or a folder in its place")
    return target


@dataclass(frozen=True, slots=True)
class KeptCode:
    """What is kept of the code: what `code.json` says, and what gives the content of a member."""

    document: Mapping[str, Any]
    content: Callable[[str], bytes]


def put_code(kept: KeptCode, folder: Path, given: Path | None, files: Mapping[str, str]) -> PutCode:
    """Put the code into the folder, which is new. given: where its repository, or a copy of it, lies.

    files: what the runs were made of, by path as seen from the study's folder, with digests.
    """
    folder = folder.absolute()
    version = _version(kept.document)
    repository = _repository_with(version, given)
    folder.mkdir(parents=True, exist_ok=True)
    if repository is not None and version is not None:
        _clone(repository, version, folder)
        if version.difference:
            _apply(kept.content(version.difference), folder)
    working = _study_folder(folder, files) if repository is not None else folder
    _write_files(kept, working)
    missing, differs = compared_files(working, files)
    if missing and repository is None and version is not None and version.commit:
        raise _no_repository(version, missing)
    now = code_version(folder) if repository is not None else {}
    commit = version.commit if version is not None and now.get("commit") == version.commit else ""
    return PutCode(working, commit, tuple(differs), tuple(missing))


def code_in(package: Package) -> KeptCode:
    """The code of a package."""
    return KeptCode(recorded_code(package), package.content)


def recorded_code(package: Package) -> dict[str, Any]:
    """What a package says of its code; nothing where it says nothing, or something else."""
    found = package.read(CODE) if CODE in package.names() else {}
    return found if isinstance(found, dict) else {}


def _version(document: Mapping[str, Any]) -> _Version | None:
    """The version that most runs were made with; its texts are looked at here."""
    listed = document.get("versions")
    versions = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    if not versions:
        return None
    chosen = max(versions, key=lambda item: item["runs"] if isinstance(item.get("runs"), int) else 0)
    commit, member = str(chosen.get("commit") or ""), str(chosen.get("difference") or "")
    if commit and not _COMMIT.fullmatch(commit):
        raise refused("the package names a commit that is none", commit[:80], "40 or 64 hexadecimal digits")
    return _Version(commit, member, str(chosen.get("remote") or ""))


def _repository_with(version: _Version | None, given: Path | None) -> Path | None:
    """A repository at hand that has the commit: that of the folder that was named, or the one around this folder."""
    if version is None or not version.commit:
        return None
    repository = repository_of(given or Path.cwd())
    if repository is None or git(repository, "cat-file", "-e", f"{version.commit}^{{commit}}").returncode != 0:
        if given is None:
            return None
        found = f"no repository around {given}" if repository is None else f"{repository} does not have it"
        raise InputError(
            f"the code of the package is the commit {version.commit[:12]}",
            found=found,
            hint=f"git -C {repository or given} fetch --all, or --code PATH of a clone that has it",
        )
    return repository


def _no_repository(version: _Version, missing: Sequence[str]) -> InputError:
    where = f" of {version.remote}" if version.remote else ""
    clone = f"git clone {version.remote} code" if version.remote else "get a clone of its repository"
    return InputError(
        f"the code of the package is the commit {version.commit[:12]}{where}, and no repository with it is at hand",
        found=f"not in the package: {', '.join(missing[:_SHOWN])}{' …' if len(missing) > _SHOWN else ''}",
        hint=f"{clone}, then --code code; isorun pack --snapshot makes a package that has the files itself",
    )


def _clone(repository: Path, version: _Version, folder: Path) -> None:
    """A repository of its own in the folder, at the commit: what was recorded of the code can then be asked again."""
    if (folder / ".git").exists() and git(folder, "rev-parse", "HEAD").stdout.strip() == version.commit:
        git(folder, "reset", "--hard", "--quiet", seconds=_SECONDS)  # a difference that was applied in part
        return
    words = ("clone", "--quiet", "--no-checkout", "--no-hardlinks", "--template=", "--", str(repository), str(folder))
    for done in (
        git(repository, *words, seconds=_SECONDS),
        git(folder, "checkout", "--quiet", "--detach", version.commit, seconds=_SECONDS),
    ):
        if done.returncode != 0:
            raise InputError(
                f"the commit {version.commit[:12]} of {repository} cannot be put into {folder}",
                found=done.stderr.strip()[-300:],
                hint="an empty --folder, and a repository that git can read",
            )


def _apply(difference: bytes, folder: Path) -> None:
    """Apply a difference, after every path in it was looked at, as git itself reads them."""
    for mode in map(b"".join, _MODES.findall(difference)):
        if mode not in _PLAIN:
            found = repr(mode[:80].decode(errors="replace"))
            raise refused("the difference in the package makes a link or a submodule", found, "plain files")
    listed = _asked(difference, folder, "apply", "--numstat", "-z")
    for path in _paths(listed):
        safe_target(folder, checked_path(path))
    _asked(difference, folder, "apply", "--binary", "--whitespace=nowarn")


def _paths(listed: bytes) -> Iterator[str]:
    """The paths of `git apply --numstat -z`: added, deleted, path; of a file that was renamed two paths follow."""
    fields = iter(listed.decode(errors="replace").split("\0"))
    for line in fields:
        if not line:
            continue
        *_, path = line.split("\t", 2)
        yield from [path] if path else [next(fields, ""), next(fields, "")]


def _asked(difference: bytes, folder: Path, *words: str) -> bytes:
    """What git answers when it is given the difference; PackageError where it cannot read or apply it."""
    variables = {**git_variables(), "LC_ALL": "C"}
    done = subprocess.run(
        [*GIT, *words], cwd=folder, env=variables, input=difference, capture_output=True, timeout=_SECONDS, check=False
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise refused("the difference in the package does not fit its commit", said)
    return done.stdout


def _study_folder(tree: Path, files: Mapping[str, str]) -> Path:
    """The folder of the study within a checkout: the one that has most of its files as they were, the nearest first."""
    relative = {path: digest for path, digest in files.items() if _is_below(path)}
    if not relative:
        return tree
    listed = git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout.split("\0")
    ends = {path: [name for name in listed if name == path or name.endswith(f"/{path}")] for path in relative}
    places = {name.removesuffix(path).rstrip("/") for path, names in ends.items() for name in names}

    def rank(place: str) -> tuple[int, int, str]:
        fitting = sum(file_digest(tree / place / path) == digest for path, digest in relative.items())
        return -fitting, place.count("/") + bool(place), place

    return tree / min(places, key=rank, default="")


def _is_below(path: str) -> bool:
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def _write_files(kept: KeptCode, working: Path) -> None:
    """The files that are in the package, each whole or not at all."""
    listed = kept.document.get("files")
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict) or not isinstance(item.get("member"), str):
            raise refused("the code of the package lists something that is no file")
        path = checked_path(item.get("path"))
        content = kept.content(item["member"])
        if hashlib.sha256(content).hexdigest() != item.get("sha256"):
            raise refused(f"{item['member']}: it is not the file that the runs were made of", str(path))
        _write(safe_target(working, path), content)


def _write(target: Path, content: bytes) -> None:
    half = target.with_name(f".{target.name[:80]}.part")
    half.unlink(missing_ok=True)
    opened = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(opened, "wb") as file:
        file.write(content)
    half.replace(target)


def compared_files(working: Path, files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Of the files that the runs were made of and that lie below the study's folder: what is missing, what differs."""
    missing, differs = [], []
    for path, digest in sorted(files.items()):
        if not _is_below(path) or digest == UNKNOWN:
            continue
        found = file_digest(working / path)
        if not found:
            missing.append(path)
        elif found != digest:
            differs.append(path)
    return missing, differs


def file_digest(path: Path) -> str:
    """SHA-256 of a plain file; empty where there is none that can be read."""
    try:
        return hash_of_file(path) if path.is_file() else ""
    except OSError:
        return ""
