"""The code of a study's runs, as a package carries it: git references, the difference to them, files that git has not.

Nothing is guessed: a difference goes in when the working copy is still the one that the runs recorded, and a file when
its digest is still the recorded one. What looks as if it held a secret stays out, and is told.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from isorun.analysis.evidence.provenance import files_of
from isorun.errors import InputError, known_names, without_passwords
from isorun.study.code import git, repository_of
from isorun.study.records import RunRecord, canonical_json
from isorun.worker.redaction import without_secrets
from isorun.worker.usercode import code_version

__all__ = ["Code", "code_for_package"]

_SUFFIXES: Final = frozenset(
    (".py", ".pyi", ".pyx", ".ipynb", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".sh", ".toml", ".yaml", ".yml")
)
_LARGEST: Final = 2**20
_MOST_FILES: Final = 2_000


@dataclass(slots=True)
class Code:
    """What a package says of the code. contents: members and what they hold. left_out: what stays out, and why.

    paths: all files that were looked at.
    """

    versions: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, str]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)

    def to_json(self) -> dict[str, Any]:
        """The member `code.json`."""
        return {"versions": self.versions, "files": self.files, "left_out": self.left_out}

    def leave_out(self, path: str, why: str) -> None:
        """Say that something is not in the package."""
        self.left_out.append({"path": path, "why": why})


def code_for_package(
    records: Sequence[RunRecord],
    folder: Path,
    *,
    with_content: bool = True,
    allowed: Iterable[str] = (),
    snapshot: bool = False,
) -> Code:
    """The code of these runs. with_content: also differences and files. allowed: paths that may look secret.

    snapshot: also the files that a commit has, so that nobody needs its repository.
    """
    code, trusted = Code(), frozenset(PurePosixPath(path).as_posix() for path in allowed)
    texts = [(canonical_json(record.code), record.code) for record in records if record.code]
    counted, documents = Counter(text for text, _ in texts), dict(texts)
    repository = repository_of(folder) if any(item.get("commit") for item in documents.values()) else None
    now = code_version(folder) if repository else {}
    for text in sorted(documents):
        version = dict(documents[text])
        code.versions.append({**version, "runs": counted[text], **_remote(repository if with_content else None)})
        if with_content and repository and version.get("dirty"):
            _add_difference(code, version, now, repository, trusted)
    if with_content:
        told = all("difference" in item or not item.get("dirty") for item in code.versions)
        tracked = _tracked(folder) if repository and told and not snapshot else frozenset()
        _add_files(code, records, folder, tracked, trusted)
        _refuse_unknown(trusted, code)
    return code


def _remote(repository: Path | None) -> dict[str, str]:
    asked = git(repository, "remote", "get-url", "origin") if repository else None
    url = asked.stdout.strip() if asked and asked.returncode == 0 else ""
    return {"remote": without_secrets(without_passwords(url))} if url else {}


def _tracked(folder: Path) -> frozenset[str]:
    listed = git(folder, "ls-files", "-z")
    return frozenset(listed.stdout.split("\0"))


def _add_difference(
    code: Code, version: dict[str, Any], now: dict[str, Any], repository: Path, trusted: frozenset[str]
) -> None:
    """The difference of the working copy to its commit, file by file, if it is still that of the runs."""
    short = str(version.get("commit", ""))[:12]
    if any(now.get(name) != version.get(name) for name in ("commit", "diff_sha256")):
        code.leave_out(f"difference to {short}", "the working copy is another one by now")
        return
    diff = git(repository, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color").stdout
    kept = []
    for path, part in _by_file(diff):
        code.paths.add(path)
        if path not in trusted and (lines := _secret_lines(part)):
            code.leave_out(f"difference of {path}", _looks_secret(lines))
        else:
            kept.append(part)
    if text := "".join(kept):
        member = f"code/difference-{len(code.contents):05}.diff"
        code.contents[member] = text.encode("utf-8", "surrogateescape")
        code.versions[-1]["difference"] = member


def _by_file(diff: str) -> Iterator[tuple[str, str]]:
    """The parts of a difference, each with the file it is about."""
    for begin, end in itertools.pairwise([*_starts(diff), len(diff)]):
        part = diff[begin:end]
        first = part.split("\n", 1)[0]
        yield first.rpartition(" b/")[2], part


def _starts(diff: str) -> list[int]:
    return [found.start() for found in re.finditer("^diff --git ", diff, re.MULTILINE)]


def _secret_lines(text: str) -> list[int]:
    """The numbers of lines that hold something which records would not keep."""
    if without_secrets(text) == text:
        return []
    found = [number for number, line in enumerate(text.splitlines(), 1) if without_secrets(line) != line]
    return found or [0]


def _looks_secret(lines: Sequence[int]) -> str:
    named = ", ".join(map(str, lines[:5])) + (" …" if len(lines) > 5 else "")
    return f"it looks as if it held a secret (line {named})"


def _add_files(
    code: Code, records: Sequence[RunRecord], folder: Path, tracked: frozenset[str], trusted: frozenset[str]
) -> None:
    """The files that the runs were made of and that no commit has, as they were then."""
    read = {item for record in records for item in files_of(record)}
    code.paths.update(path for path, _ in read)
    wanted = sorted(item for item in read if item[0] not in tracked)
    sources = [(path, digest) for path, digest in wanted if PurePosixPath(path).suffix in _SUFFIXES]
    for path, digest in sources[:_MOST_FILES]:
        content = _content(folder, path)
        if isinstance(content, str):
            code.leave_out(path, content)
        elif hashlib.sha256(content).hexdigest() != digest:
            code.leave_out(path, "it is another one by now than when the runs were made")
        elif path not in trusted and (lines := _secret_lines(content.decode("utf-8", "replace"))):
            code.leave_out(path, _looks_secret(lines))
        else:
            member = f"code/file-{len(code.contents):05}"
            code.contents[member] = content
            code.files.append({"path": path, "sha256": digest, "member": member})
    if len(sources) > _MOST_FILES:
        code.leave_out(f"{len(sources) - _MOST_FILES:,} more files", f"a package has at most {_MOST_FILES:,}")


def _refuse_unknown(trusted: frozenset[str], code: Code) -> None:
    """A mistyped path would stay out, and one of data never goes in: nobody is left to believe that it did."""
    for path in sorted(trusted - code.paths):
        left_out = [item["path"].removeprefix("difference of ") for item in code.left_out]
        raise InputError(
            f"no file of the code of these runs is called {path}, so that it could be let in",
            found=f"left out: {known_names(path, left_out)}",
            hint="isorun pack --dry-run lists what is in it and what stays out; data are not in a package",
        )


def _content(folder: Path, path: str) -> bytes | str:
    """The file, or why it is not had. Links are followed within the folder and not out of it."""
    try:
        place = (folder / path).resolve()
        if PurePosixPath(path).is_absolute() or not place.is_relative_to(folder.resolve()):
            return "it lies outside the folder of the study"
        if not place.is_file():
            return "it is not there any more"
        if place.stat().st_size > _LARGEST:
            return f"it is larger than {_LARGEST // 2**20} MiB"
        return place.read_bytes()
    except (OSError, ValueError) as error:
        return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
