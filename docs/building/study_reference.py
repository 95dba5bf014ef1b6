"""docs/reference/study-keys.md, from what the parser allows: `python docs/building/study_reference.py`.

The parser is given a key that no table has, and says which it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from isorun import IsorunError, Study
from isorun.study.design import KEYS, study_from_document

__all__ = ["PAGE", "markdown", "tables"]

PAGE = Path(__file__).resolve().parent.parent / "reference" / "study-keys.md"

_INTRODUCTION = """\
# All keys of a study file

Every key that a study file may have, table by table, as the parser knows them; made by
`python docs/building/study_reference.py`. What they mean is in [the study file](../study-file.md).
Any other key is refused, with the nearest that there is.

| table | keys |
|---|---|
"""
_UNKNOWN: Final = "§"
_APPROACH: Final = {"command": "python train.py"}
_TABLES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "[approaches.NAME]": ("approaches", {"approaches": {"NAME": {**_APPROACH, _UNKNOWN: 1}}}),
    "[environments.NAME]": ("environments", {"environments": {"NAME": {_UNKNOWN: 1}}}),
    "[metrics.NAME]": ("metrics", {"metrics": {"NAME": {_UNKNOWN: 1}}}),
    "[selections.NAME]": ("selections", {"selections": {"NAME": {_UNKNOWN: 1}}}),
    "[sources]": ("sources", {"sources": {_UNKNOWN: 1}}),
    "[policy]": ("policy", {"policy": {_UNKNOWN: 1}}),
    "[search]": ("search", {"search": {_UNKNOWN: 1}}),
    "[searches.NAME]": ("searches", {"searches": {"NAME": {_UNKNOWN: 1}}}),
    "a distribution in [configs.NAME]": ("configs", {"configs": {"NAME": {"lr": {_UNKNOWN: [1, 2]}}}}),
}


def markdown() -> str:
    """The whole page."""
    rows = [f"| the file | {_shown(KEYS)} |"]
    rows += [f"| [`{name}`](../study-file.md#{heading}) | {_shown(known)} |" for name, heading, known in tables()]
    return _INTRODUCTION + "\n".join(rows) + "\n"


def tables() -> Iterator[tuple[str, str, list[str]]]:
    """Each table with the heading that explains it, and the keys that it may have."""
    for name, (heading, document) in _TABLES.items():
        yield name, heading, _allowed({"approaches": {"NAME": _APPROACH}, **document})


def _allowed(document: dict[str, Any]) -> list[str]:
    try:
        made: Study = study_from_document(document, Path(), default_name="study")
    except IsorunError as error:
        return str(error.allowed).split(", ")
    raise AssertionError(f"the parser took a key that there is not: {made!r}")


def _shown(known: Any) -> str:
    return ", ".join(f"`{key}`" for key in known)


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
    print(PAGE)
