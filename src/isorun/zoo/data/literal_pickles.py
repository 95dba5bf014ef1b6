"""Plain data out of pickle files, read and never unpickled.

A pickle is a program for a small stack machine. Some of its operations build numbers, texts and containers; others
import what the file names and call it. This reader knows only the first kind: it carries them out itself, and stops
with an error at any other. What it returns is a tree of plain values, since a container may be there only once: no
cycles, and nothing that grows beyond the file when it is walked. docs/decisions/0003 says why this is not unpickling.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import DataError

__all__ = ["PlainValue", "literals_from", "read_literals"]

PlainValue = Any
"""None, bool, int, float, str, bytes, or a list, tuple or dict of these; keys of dicts are texts and small integers."""

MOST_BYTES: Final = 16 * 2**20
MOST_OPERATIONS: Final = 1_000_000
MOST_NESTED: Final = 50
_LARGEST_KEY: Final = 2**31

_ONCE: Final = object()
"""Stands in the memo for a container: it was there, and must not be there again."""


def read_literals(path: Path) -> PlainValue:
    """The plain value a pickle file holds; an DataError for a file that holds more, or is damaged or too large."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot read {path}", found=str(error.strerror or error)) from error
    return literals_from(content, str(path))


def literals_from(content: bytes, name: str = "the pickle") -> PlainValue:
    """The plain value in the bytes of a pickle; `name` is what errors call it."""
    if len(content) > MOST_BYTES:
        raise DataError(f"{name} is too large", found="more bytes", allowed=f"{MOST_BYTES:,} bytes")
    reader = _Reader(name)
    try:
        for operation, argument, place in pickletools.genops(content):
            if operation.name == "STOP":
                return reader.end(place, len(content))
            reader.carry_out(operation.name, argument, place or 0)
    except ValueError as error:
        raise DataError(f"{name} is damaged or no plain data", found=str(error), allowed="a whole pickle") from error
    raise DataError(f"{name} is damaged", found="no end", allowed="a whole pickle")


@dataclass(slots=True)
class _Item:
    """A value under construction and how deeply it is nested: 0 for a number or text."""

    value: PlainValue
    nested: int = 0


class _Reader:
    """The stack machine, less every operation that names or calls something."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stacks: list[list[_Item]] = [[]]
        self._memo: dict[int, PlainValue] = {}
        self._done = 0

    def carry_out(self, operation: str, argument: Any, place: int) -> None:
        """One operation, or an error that names it."""
        self._done += 1
        if self._done > MOST_OPERATIONS:
            raise DataError(f"{self._name} is too large", found="more", allowed=f"{MOST_OPERATIONS:,} operations")
        if operation in _VALUES:
            self._push(argument)
        elif operation in _CONSTANTS:
            self._push(_CONSTANTS[operation])
        elif operation in _STEPS:
            _STEPS[operation](self, argument)
        elif operation not in _NOTHING:
            raise self._refusal(operation, argument, place)

    def end(self, place: int | None, size: int) -> PlainValue:
        """The one value that is left."""
        if place != size - 1 or len(self._stacks) != 1 or len(self._stacks[0]) != 1:
            raise ValueError("something is left over at the end")
        return self._stacks[0][0].value

    def _refusal(self, operation: str, argument: Any, place: int) -> DataError:
        about = f" {argument!r:.80}" if argument is not None else ""
        return DataError(
            f"{self._name} holds more than plain data, and is not read",
            found=f"the operation {operation}{about} at byte {place:,}",
            allowed="numbers, texts, lists, tuples and dicts; isorun never imports or calls what a file names",
        )

    def _push(self, value: PlainValue, nested: int = 0) -> None:
        if nested > MOST_NESTED:
            raise ValueError(f"containers nested more than {MOST_NESTED} deep")
        self._stacks[-1].append(_Item(value, nested))

    def mark(self, _: Any) -> None:
        if len(self._stacks) > 2 * MOST_NESTED:
            raise ValueError("too many open containers")
        self._stacks.append([])

    def _since_mark(self) -> list[_Item]:
        if len(self._stacks) == 1:
            raise ValueError("a container that was never opened")
        return self._stacks.pop()

    def _top(self) -> _Item:
        if not self._stacks[-1]:
            raise ValueError("a value is missing")
        return self._stacks[-1][-1]

    def _last(self, count: int) -> list[_Item]:
        stack = self._stacks[-1]
        if len(stack) < count:
            raise ValueError("a value is missing")
        taken = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        return taken

    def empty_list(self, _: Any) -> None:
        self._push([], 1)

    def empty_dict(self, _: Any) -> None:
        self._push({}, 1)

    def append(self, _: Any) -> None:
        self._extend(self._last(1))

    def appends(self, _: Any) -> None:
        self._extend(self._since_mark())

    def _extend(self, items: list[_Item]) -> None:
        target = self._container(list)
        target.value.extend(item.value for item in items)
        self._deepen(target, items)

    def set_item(self, _: Any) -> None:
        self._update(self._last(2))

    def set_items(self, _: Any) -> None:
        self._update(self._since_mark())

    def _update(self, items: list[_Item]) -> None:
        target = self._container(dict)
        for key, item in zip(items[::2], items[1::2], strict=True):
            target.value[_checked_key(key.value)] = item.value
        self._deepen(target, items)

    def _container(self, kind: type) -> _Item:
        target = self._top()
        if not isinstance(target.value, kind):
            raise ValueError(f"items for a {kind.__name__} that is none")
        return target

    def _deepen(self, target: _Item, items: list[_Item]) -> None:
        target.nested = max(target.nested, _nested(items))
        if target.nested > MOST_NESTED:
            raise ValueError(f"containers nested more than {MOST_NESTED} deep")

    def whole_list(self, _: Any) -> None:
        self.tuple_of(self._since_mark(), list)

    def whole_dict(self, _: Any) -> None:
        items = self._since_mark()
        self._push({}, 1)
        self._update(items)

    def whole_tuple(self, _: Any) -> None:
        self.tuple_of(self._since_mark())

    def tuple_of(self, items: list[_Item], kind: type = tuple) -> None:
        self._push(kind(item.value for item in items), _nested(items))

    def short_tuple(self, count: int) -> None:
        self.tuple_of(self._last(count))

    def memoize(self, _: Any) -> None:
        self.put(len(self._memo))

    def put(self, place: int) -> None:
        item = self._top()
        self._memo[place] = _ONCE if item.nested else item.value

    def get(self, place: int) -> None:
        if place not in self._memo:
            raise ValueError(f"a value that was never kept ({place})")
        if self._memo[place] is _ONCE:
            raise ValueError("a container that is there more than once")
        self._push(self._memo[place])


def _nested(items: list[_Item]) -> int:
    return 1 + max((item.nested for item in items), default=0)


def _checked_key(key: PlainValue) -> str | int:
    """The key; other values could be chosen so that a dict of them takes hours to fill."""
    if isinstance(key, str) or (type(key) is int and abs(key) < _LARGEST_KEY):
        return key
    raise ValueError(f"a key {key!r:.40}, which is neither a text nor a small integer")


_NOTHING: Final = frozenset({"PROTO", "FRAME"})
_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES: Final = frozenset(
    {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
    | {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
)
_STEPS: Final[dict[str, Callable[[_Reader, Any], None]]] = {
    "MARK": _Reader.mark,
    "EMPTY_LIST": _Reader.empty_list,
    "LIST": _Reader.whole_list,
    "APPEND": _Reader.append,
    "APPENDS": _Reader.appends,
    "EMPTY_DICT": _Reader.empty_dict,
    "DICT": _Reader.whole_dict,
    "SETITEM": _Reader.set_item,
    "SETITEMS": _Reader.set_items,
    "EMPTY_TUPLE": lambda reader, _: reader.short_tuple(0),
    "TUPLE": _Reader.whole_tuple,
    "TUPLE1": lambda reader, _: reader.short_tuple(1),
    "TUPLE2": lambda reader, _: reader.short_tuple(2),
    "TUPLE3": lambda reader, _: reader.short_tuple(3),
    "MEMOIZE": _Reader.memoize,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Reader.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Reader.get),
}
