"""JSON with one form: RFC 8785 for the manifest and the signature, that of records for most else. Read within bounds.

What is read has to be what would be written of it, byte for byte. So nothing is said twice (two keys of one name), no
number stands for another (1e400, 1.0 for 1), and nobody can hide a thing in how it is written.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from isorun.packages import refused
from isorun.study.records import canonical_json

__all__ = [
    "LONGEST_LINE",
    "bytes_in_order",
    "canonical_bytes",
    "jcs",
    "memory_of_line",
    "read_canonical",
    "read_in_order",
    "read_jcs",
    "read_lines",
]

LONGEST_LINE: Final = 8 * 2**20
_MOST_VALUES: Final = 300_000
_DEEPEST: Final = 60
_SHORT: Final = 100_000
_AT_ONCE: Final = 2**17
_LONG: Final = 2**20
_LARGEST: Final = 10**300
_VALUE, _OBJECT, _LINE = 40, 72, 48
"""Bytes that Python takes for a number in a list, for an empty list or object, and for a line."""
_TEXTS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}
_ESCAPES: Final = {
    ord(char): escaped
    for char, escaped in zip('"\\\b\f\n\r\t', ('\\"', "\\\\", *(f"\\{c}" for c in "bfnrt")), strict=True)
}
_PLAIN: Final = {**{code: f"\\u{code:04x}" for code in range(32)}, **_ESCAPES}


def jcs(value: Any) -> bytes:
    """The one form that RFC 8785 gives to a value; ValueError for what it has none for."""
    return "".join(_jcs_parts(value)).encode("utf-8")


def _jcs_parts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        opening = "{"
        for key in sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass")):
            yield f"{opening}{_jcs_text(key)}:"
            yield from _jcs_parts(value[key])
            opening = ","
        yield "{}" if opening == "{" else "}"
    elif isinstance(value, list | tuple):
        opening = "["
        for item in value:
            yield opening
            yield from _jcs_parts(item)
            opening = ","
        yield "[]" if opening == "[" else "]"
    elif isinstance(value, str):
        yield _jcs_text(value)
    elif value is None or isinstance(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    else:
        yield _jcs_number(value)


def _jcs_text(text: str) -> str:
    return f'"{text.translate(_PLAIN)}"'


def _jcs_number(value: float) -> str:
    """As ECMAScript writes a number: the shortest digits that read back as it."""
    if isinstance(value, int) and (abs(value) > _LARGEST or int(float(value)) != value):
        raise ValueError("a whole number that a number of JSON cannot hold")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"JSON has no number {number}")
    if number == 0:
        return "0"
    sign, digits, exponent = _digits(number)
    place = len(digits) + exponent
    if 0 < place <= 21:
        body = digits + "0" * exponent if exponent >= 0 else f"{digits[:place]}.{digits[place:]}"
    elif -6 < place <= 0:
        body = f"0.{'0' * -place}{digits}"
    else:
        body = f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{place - 1:+d}"
    return sign + body


def _digits(number: float) -> tuple[str, str, int]:
    """Sign, digits without zeros at either end, and the power of ten that they are times."""
    mantissa, _, power = repr(abs(number)).partition("e")
    before, _, behind = mantissa.partition(".")
    digits = (before + behind).lstrip("0")
    short = digits.rstrip("0")
    return "-" if number < 0 else "", short, int(power or 0) - len(behind) + len(digits) - len(short)


def canonical_bytes(value: Any) -> bytes:
    """The form of all JSON but the manifest: sorted names, no spaces, ASCII, numbers as Python writes them."""
    return canonical_json(value).encode("ascii")


def bytes_in_order(value: Any) -> bytes:
    """The same with the names in the order that they have: of a design that is part of what it says."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def read_jcs(data: bytes, where: str) -> Any:
    """What a member in the form of RFC 8785 says."""
    return _read(data, where, jcs, functools.partial(json.loads, parse_int=_whole))


def read_canonical(data: bytes, where: str) -> Any:
    """What JSON in our form says."""
    return _read(data, where, canonical_bytes, json.loads)


def read_lines(lines: Iterable[bytes], where: str) -> Iterator[Any]:
    """What lines of JSON in our form say. Short ones are read many at a time, in about half of the time."""
    waiting, size = list[bytes](), 0
    for line in lines:
        if not _is_plain(line):
            yield from _each(waiting, where)
            yield read_canonical(line, where)
            waiting, size = [], 0
            continue
        waiting.append(line)
        size += len(line) + 1
        if size >= _AT_ONCE:
            yield from _each(waiting, where)
            waiting, size = [], 0
    yield from _each(waiting, where)


def _each(lines: Sequence[bytes], where: str) -> Iterable[Any]:
    """What each of the lines says; where one of them is not as it should be, each is read alone, and that one told."""
    found = _together(lines)
    return [read_canonical(line, where) for line in lines] if found is None else found


def _together(lines: Sequence[bytes]) -> list[Any] | None:
    """What each line says, read as one array; None where anything is not as it should be.

    Between the lines stands a text that no line can hold, for nobody knew it: where it is not found between all of the
    values, some line was not one value by itself.
    """
    mark = os.urandom(16).hex()
    try:
        joined = f',"{mark}",'.encode("ascii").join(lines)
        read = json.loads(f"[{joined.decode('ascii')}]")
        values, marks = read[::2], read[1::2]
        apart = len(values) == len(lines) and marks.count(mark) == len(marks)
        return values if apart and canonical_bytes(values) == b"[%b]" % b",".join(lines) else None
    except (ValueError, OverflowError, RecursionError):
        return None


def memory_of_line(line: bytes) -> int:
    """About what a line takes when it was read, and not less: values are objects, which are larger than what they say.

    A text of which one character needs four bytes has four for each. While a long line is read there are several of it.
    """
    wide = 4 if b"\\ud" in line else 2 if b"\\u" in line else 1
    copies = 2 if len(line) > _LONG else 1
    return (
        _LINE + copies * wide * len(line) + _VALUE * line.count(b",") + _OBJECT * (line.count(b"[") + line.count(b"{"))
    )


def read_in_order(data: bytes, where: str) -> Any:
    """What JSON says whose names have an order of their own."""
    return _read(data, where, bytes_in_order, json.loads)


def _whole(digits: str) -> float:
    """A number without a point: whole as far as a number of JSON is, beyond that the float64 that it stands for."""
    number = int(digits)
    return number if abs(number) < 2**53 else float(number)


def _read(data: bytes, where: str, write: Callable[[Any], bytes], read: Callable[[str], Any]) -> Any:
    _refuse_too_much(data, where)
    try:
        value = read(data.decode("utf-8"))
        same = write(value) == data
    except (ValueError, OverflowError, RecursionError) as error:
        raise refused(f"{where}: this is not JSON that a package may hold", f"{error}"[:200]) from None
    if not same:
        raise refused(f"{where}: this JSON is not in its one form", allowed="the form that docs/packages.md describes")
    return value


def _is_plain(data: bytes) -> bool:
    """As most lines are: too short for many values, and with too few brackets to be deep."""
    return len(data) < _SHORT and data.count(b"[") + data.count(b"{") <= _DEEPEST


def _refuse_too_much(data: bytes, where: str) -> None:
    """Before anything is made of it: how long it is, how many values it has, and how deep they lie."""
    if _is_plain(data):
        return
    if len(data) > LONGEST_LINE:
        raise refused(f"{where}: too long", f"{len(data):,} bytes", f"{LONGEST_LINE:,}")
    bare = _TEXTS.sub(b"", data)
    brackets = bare.translate(None, _BRACKETS)
    values = bare.count(b",") + len(brackets)
    if values > _MOST_VALUES:
        raise refused(f"{where}: too many values", f"about {values:,}", f"{_MOST_VALUES:,}")
    depth = max(itertools.accumulate(map(_STEP.__getitem__, brackets)), default=0)
    if depth > _DEEPEST:
        raise refused(f"{where}: values within values, too deep", f"{depth:,}", f"{_DEEPEST}")
