"""Seeds that are new in every run: made of the clock, the number of the process, or the system's entropy.

`torch.manual_seed(int(time.time()))` asks for what a generator without a seed asks for. Such a seed is known by its
value (a time since this process began, a number that the system's entropy gave), or by the line of the training that
hands it over, which is parsed and never run. In doubt it is a constant: a seed of the training's own must not be taken
for a time.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from typing import Any, Callable

from .recorder import Recorder

# What a seed may be made of that is new in every run, as it is told.
CLOCK, PROCESS, SYSTEM = "the clock", "the process's number", "the system's entropy"
ADDRESS = "an address in memory"

_began = time.time()
_SCALES = (1, 10**3, 10**6, 10**9)
# Ranks and workers add their number to a time.
_ADDED = 1_000
_NARROWEST = 2**16
_MOST_REMEMBERED = 64
_WIDEST_BYTES = 64
_drawn: tuple[bytes, ...] = ()


def watch(told: Callable[[str], None] | None) -> None:
    """Remember what the system's entropy gives from now on. told: is called for each draw, with the function's name.

    No level answers entropy itself: names of temporary files and keys must not be the same in two runs.
    """
    global _began  # noqa: PLW0603  a fork server has loaded this long before
    _began = time.time()

    def watched(original: Callable[..., bytes], named: str) -> Callable[..., bytes]:
        @functools.wraps(original)
        def drawn(*args: Any, **kwargs: Any) -> bytes:
            if told is not None:
                told(named)
            found = original(*args, **kwargs)
            _remember(found)
            return found

        return drawn

    os.urandom = watched(os.urandom, "os.urandom or random.SystemRandom")
    if hasattr(os, "getrandom"):
        os.getrandom = watched(os.getrandom, "os.getrandom")
    for name in ("random", "uuid"):  # they have taken the function by its name
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "_urandom"):
            module._urandom = os.urandom  # type: ignore[attr-defined]  # noqa: SLF001


def _remember(found: bytes) -> None:
    global _drawn  # noqa: PLW0603  a new one each time: other threads may be looking through it
    if len(found) <= _WIDEST_BYTES:
        _drawn = (*_drawn[1 - _MOST_REMEMBERED :], found)


def tell_open(recorder: Recorder) -> Callable[[str], None]:
    """Remembers as left open which lines of the training draw on the system's entropy, by `secrets` or `uuid`, too."""
    from .seeding import calling

    def told(named: str) -> None:
        caller = calling()
        is_own_line = not caller.library or not caller.where.startswith(caller.library)
        if is_own_line and not caller.importing:
            drawn_by = os.path.basename(caller.library)[:-3] or named  # noqa: PTH119
            recorder.left_open(f"{drawn_by} at {caller.where} drew on {SYSTEM}")

    return told


def made_of(value: Any, call: str, where: Callable[[], str]) -> str:
    """What is new in every run in a seed; empty for a constant.

    call: what is seeded with it; where: says file:line of who hands it over.
    """
    is_number = isinstance(value, (int, float))
    if is_number and _is_time(value):
        return CLOCK
    if isinstance(value, int) and value >= _NARROWEST and _drawn and any(_gives(draw, value) for draw in _drawn):
        return SYSTEM
    from .source_lines import seed_made_of  # most processes seed nothing by themselves

    file, _, line = where().rpartition(":")
    return seed_made_of(file, int(line), call.rpartition(".")[2]) if line.isdigit() else ""


def _is_time(value: float) -> bool:
    """Whether it is a time since the process began, in seconds or parts of them, and nobody gave it from outside."""
    if value < int(_began):
        return False
    now = time.time()
    if not any(int(_began * scale) <= value <= now * scale + _ADDED for scale in _SCALES):
        return False
    text = str(value)
    return not any(text in given for given in (*sys.argv, *os.environ.values()))


def _gives(draw: bytes, value: int) -> bool:
    """Whether bytes are the number, as `int.from_bytes`, `secrets.randbits` or `uuid4` make one of them."""
    if value.bit_length() > 8 * len(draw):
        return False
    whole = int.from_bytes(draw, "big")
    shifted = whole >> max(0, whole.bit_length() - value.bit_length())
    halves = (int.from_bytes(draw, "little"), whole % 2**32, whole % 2**31, whole % 2**64)
    if value in (whole, shifted, *halves) or any(whole >> bits == value for bits in range(8)):
        return True
    return len(draw) == 16 and value == _as_uuid(whole)


def _as_uuid(whole: int) -> int:
    """As a random UUID has it: the version and the variant in place of six bits."""
    return (whole & ~(0xF000 << 64) & ~(0xC000 << 48)) | (4 << 76) | (0x8000 << 48)
