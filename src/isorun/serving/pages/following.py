"""While a study runs its page follows it: events, one whenever something came.

However many follow a study, the shelf is asked once a second: it remembers what it saw. A stream ends when nothing runs
any more, or after some minutes; browsers come again by themselves.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from isorun.in_progress import Status

__all__ = ["Followers", "told"]

_EVERY_SECONDS: Final = 2.0
_LONGEST_SECONDS: Final = 600.0
_MOST: Final = 200

Look = Callable[[], dict[str, Any]]


def told(revision: str, standing: Status | None) -> dict[str, Any]:
    """What an event says."""
    at_work = standing is not None and standing.is_at_work
    return {"revision": revision, "at_work": at_work, "standing": str(standing) if at_work else ""}


class Followers:
    """How many streams are open: each holds a connection, so there is an end to them."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._open = 0

    @property
    def is_full(self) -> bool:
        """Whether no more can follow."""
        return self._open >= self._most

    async def events(
        self, look: Look, *, every: float = _EVERY_SECONDS, longest: float = _LONGEST_SECONDS
    ) -> AsyncIterator[str]:
        """An event at once, and one whenever what is seen changes; comments between, so that a dead line shows."""
        self._open += 1
        try:
            yield "retry: 5000\n\n"
            began, last = time.monotonic(), None
            while True:
                seen = await asyncio.to_thread(look)
                yield _event(seen) if seen != last else ": still here\n\n"
                if not seen["at_work"] or time.monotonic() - began > longest:
                    return
                last = seen
                await asyncio.sleep(every)
        finally:
            self._open -= 1


def _event(seen: dict[str, Any]) -> str:
    return f"event: standing\ndata: {json.dumps(seen)}\n\n"
