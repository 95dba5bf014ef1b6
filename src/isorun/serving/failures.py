"""How often an address failed to say who it is: too often, and it is not heard for a while."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

from isorun.serving.refusals import Refusal

__all__ = ["Failures"]

_ALLOWED: Final = 10
_SECONDS: Final = 60.0
_MOST_ADDRESSES: Final = 10_000


class Failures:
    """Counts failures by address: ten are forgiven, one more every six seconds. Of many addresses the latest are known.

    Behind a proxy all requests come from one address, so that a valid token of a program is never refused for the
    failures of others; logging in by a page and setting up are.
    """

    def __init__(self) -> None:
        self._by_address: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, address: str) -> None:
        """One more failure."""
        now = time.monotonic()
        self._by_address[address] = (self._level(address, now) + 1, now)
        self._by_address.move_to_end(address)
        while len(self._by_address) > _MOST_ADDRESSES:
            self._by_address.popitem(last=False)

    def refuse(self, address: str) -> None:
        """Refuse an address that failed too often."""
        level = self._level(address, time.monotonic())
        if level > _ALLOWED:
            seconds = int((level - _ALLOWED) * _SECONDS / _ALLOWED) + 1
            raise Refusal(
                429,
                "too many tokens from this address were wrong",
                hint=f"come again in {seconds} s",
                headers=(("retry-after", str(seconds)),),
            )

    def _level(self, address: str, now: float) -> float:
        count, since = self._by_address.get(address, (0.0, now))
        return max(0.0, count - (now - since) * _ALLOWED / _SECONDS)
