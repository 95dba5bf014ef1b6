"""Study files: TOML in, a Study out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from isorun.errors import StudyError, known_names
from isorun.study.design import Study

__all__ = ["load_study", "study_from_document"]

KEYS: Final = (
    "name",
    "approaches",
    "configs",
    "environments",
    "levels",
    "seeds",
    "repeats",
    "take_seeds",
    "metrics",
    "selections",
    "sources",
    "policy",
)


def load_study(path: Path) -> Study:
    """The study declared in a TOML file; its folder is the file's folder."""
    document = _read(path)
    try:
        return study_from_document(document, path.parent, default_name=path.stem)
    except StudyError as error:
        what = f"{path}: {error.what}"
        raise StudyError(what, found=error.found, allowed=error.allowed, hint=error.hint) from None


def study_from_document(document: dict[str, Any], folder: Path, default_name: str) -> Study:
    """The study that a parsed document declares."""
    for key in document:
        if key not in KEYS:
            raise StudyError(f"there is no key {key!r} in a study", allowed=known_names(key, KEYS))
    if "approaches" not in document:
        hint = 'add [approaches.NAME] with command = "python train.py"'
        raise StudyError("the study has no approaches, so there is nothing to run", hint=hint)
    arguments = {"name": default_name, **document}
    return Study(arguments.pop("name"), folder=folder, **arguments)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise StudyError(f"there is no study file {path}", hint="isorun run --help shows how to start one") from None
    except IsADirectoryError:
        raise StudyError(
            f"{path} is a folder, not a study file", hint=f"name the file: {path / 'study.toml'}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"the study file {path} cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{path} is not valid TOML: {error}") from None
    except RecursionError:
        raise StudyError(f"{path} is not a usable study file: it is nested too deeply") from None
