"""The papers that can be reproduced, by name; each loads when it is asked for."""

from __future__ import annotations

import importlib
from typing import Final

from isorun.errors import InputError, UsageError, known_names
from isorun.zoo.paper import SCALES, AbstractPaper, Request

__all__ = ["NAMES", "check_request", "paper", "papers"]

_CLASSES: Final = {"ase20": "Ase20", "tacl18": "Tacl18", "fewshot": "Fewshot", "dream": "Dream"}
_DEVICES: Final = ("auto", "cpu", "cuda")
NAMES: Final = tuple(_CLASSES)


def paper(name: str) -> AbstractPaper:
    """The paper of that name."""
    if name not in _CLASSES:
        raise InputError(
            f"there is no paper {name!r} to reproduce", allowed=known_names(name, NAMES), hint="isorun reproduce"
        )
    module = importlib.import_module(f"isorun.zoo.studies.{name}.paper")
    found: AbstractPaper = getattr(module, _CLASSES[name])()
    return found


def papers() -> tuple[AbstractPaper, ...]:
    """All of them, in the order in which they are listed."""
    return tuple(paper(name) for name in NAMES)


def check_request(chosen: AbstractPaper, request: Request) -> None:
    """Refuse a scale, part, device or number of runs that the paper does not have."""
    if request.scale not in chosen.scales:
        known = tuple(scale for scale in SCALES if scale in chosen.scales)
        allowed = known_names(request.scale, known)
        raise UsageError(
            f"there is no scale {request.scale!r}", allowed=allowed, hint=f"isorun reproduce {chosen.name}"
        )
    for part in request.only:
        if part not in chosen.parts:
            allowed = known_names(part, chosen.parts) if chosen.parts else "nothing: it has no parts"
            raise UsageError(f"{chosen.name} has no part {part!r}", allowed=allowed, hint="isorun reproduce")
    if request.device not in _DEVICES:
        raise UsageError(f"there is no device {request.device!r}", allowed=", ".join(_DEVICES))
    if request.runs is not None and request.runs < 1:
        raise UsageError("the number of runs is too small", found=str(request.runs), allowed="1 or more")
