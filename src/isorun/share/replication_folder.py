"""The folder of a replication: the rule as it was declared, the package's code and data, and the new runs.

    code/               the package's code; runs work there, in the study's folder of it
    .isorun/            the store of the new runs, unless another one is named
    replication.json    what was declared before the first run; the same call goes on, another one is refused
    result.json         what was said at last

The rule is written when code and data are there: a call that was refused or killed before begins anew.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence.provenance import files_of
from isorun.errors import InputError
from isorun.packages.reading import Package
from isorun.share.at_hand import Lack, bring_data, checked_files, lacking_code
from isorun.share.rebuilding import PutCode, code_in, put_code
from isorun.share.surroundings import data_of
from isorun.study.records import RunRecord

__all__ = ["RESULT", "ReplicationFolder"]

RESULT: Final = "result.json"
_DECLARED: Final = "replication.json"
_CODE: Final = "code"
_HALF: Final = "code.part"


@dataclass(frozen=True, slots=True)
class ReplicationFolder:
    """Where a package is run again. declared: what is asked for; what is kept there has to be the same."""

    folder: Path
    declared: Mapping[str, Any]

    @property
    def store(self) -> str:
        """The store of the new runs."""
        return str(self.folder / ".isorun")

    def refuse_other(self) -> None:
        """Refuse a folder that holds something else, before anything is written to it."""
        kept = self._kept()
        if kept is not None:
            now = json.loads(json.dumps(self.declared))
            # One that was kept by an older version says less.
            asked = {**now, **{name: value for name, value in kept.items() if name != "working"}}
            if asked != now:
                changed = [name for name in now if asked[name] != now[name]]
                raise InputError(
                    f"{self.folder} holds a replication that was declared otherwise",
                    found=", ".join(f"{name} {asked.get(name)}" for name in changed),
                    hint="the same words go on with it; --folder NEW begins another one",
                )
        elif self.folder.exists() and (not self.folder.is_dir() or _is_used(self.folder)):
            raise InputError(f"{self.folder} is not empty", hint="--folder NEW names one that the code can be put into")

    def put(
        self, package: Package, records: Sequence[RunRecord], code: Path | None, data: Sequence[Path]
    ) -> tuple[Path, list[Lack]]:
        """The folder to run in, with code and data; and what of them is not as it was. `declare` comes after it."""
        needed = checked_files(data_of(records)["files"])
        files = {path: digest for record in records for path, digest in files_of(record) if path not in needed}
        kept = self._kept()
        below = self._put_code(package, code, files) if kept is None else str(kept["working"])
        working = self.folder.absolute() / _CODE / below
        hint = "--code PATH names a clone of its repository, or a folder that has it"
        brought = bring_data(needed, working, [*data, code or Path.cwd()], is_ours=True)
        return working, [*lacking_code(working, files, hint), *brought]

    def declare(self, working: Path) -> None:
        """Write the rule down before the first run; from then on the folder is for this one."""
        if self._kept() is None:
            below = working.relative_to(self.folder.absolute() / _CODE).as_posix()
            _write(self.folder / _DECLARED, {**self.declared, "working": below})

    def keep_result(self, result: Mapping[str, Any]) -> None:
        """Write what was said, whole."""
        _write(self.folder / RESULT, result)

    def _put_code(self, package: Package, code: Path | None, files: Mapping[str, str]) -> str:
        """Put the code there; where in it the study lies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        half = (self.folder / _HALF).absolute()
        shutil.rmtree(half, ignore_errors=True)
        shutil.rmtree(self.folder / _CODE, ignore_errors=True)
        put: PutCode = put_code(code_in(package), half, code, files)
        below = put.working.relative_to(half).as_posix()
        half.rename((self.folder / _CODE).absolute())
        return below

    def _kept(self) -> Mapping[str, Any] | None:
        path = self.folder / _DECLARED
        if not path.is_file():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            below = Path(kept["working"])
            if below.is_absolute() or ".." in below.parts:
                raise ValueError("working")
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path} cannot be read", hint="--folder NEW begins another replication") from None
        found: Mapping[str, Any] = kept
        return found


def _is_used(folder: Path) -> bool:
    """Whether there is something in it that a replication which was killed early does not leave."""
    return any(path.name not in {_CODE, _HALF} for path in folder.iterdir())


def _write(path: Path, document: Mapping[str, Any]) -> None:
    half = path.with_name(f".{path.name}.part")
    half.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    half.replace(path)
