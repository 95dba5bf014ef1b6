"""Long tables a page at a time: the number of the page is in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from isorun.errors import InputError

__all__ = ["Paging"]

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Paging:
    """Which of so many items are shown. page: from 1 on."""

    items: int
    page: int
    size: int

    @classmethod
    def of(cls, items: int, query: Mapping[str, str], size: int) -> Paging:
        """As the address says; the first page where it says nothing."""
        said = query.get("page", "") or "1"
        last = max(1, -(-items // size))
        if not (said.isascii() and said.isdigit() and len(said) < 9 and 1 <= int(said) <= last):
            raise InputError("there is no such page", found=said[:40], allowed=f"1 to {last}")
        return cls(items, int(said), size)

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, -(-self.items // self.size))

    def part(self, items: Sequence[_Item]) -> Sequence[_Item]:
        """Those that are shown."""
        return items[(self.page - 1) * self.size : self.page * self.size]

    def links(self, of: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
        """To the pages before and after this one."""
        if self.last == 1:
            return ()
        before = [("previous page", of(str(self.page - 1)))] if self.page > 1 else []
        after = (
            [(f"next page ({self.page + 1} of {self.last})", of(str(self.page + 1)))] if self.page < self.last else []
        )
        return (*before, *after)
