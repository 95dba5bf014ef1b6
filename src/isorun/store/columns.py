"""How values that SQLite has no exact place for are put into a column, and read back."""

from __future__ import annotations

import base64
import math

__all__ = [
    "base64_to_bytes",
    "hex_to_bytes",
    "integer_from_column",
    "integer_to_column",
    "number_from_column",
    "text_from_column",
    "text_to_column",
]

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def integer_to_column(value: int | None) -> int | str | None:
    """An integer of any size: as text beyond 64 bits."""
    return value if value is None or _SMALLEST <= value <= _LARGEST else str(value)


def integer_from_column(value: int | str | None) -> int | None:
    """The integer that `integer_to_column` wrote."""
    return None if value is None else int(value)


def number_from_column(value: float | None) -> float:
    """A float; SQLite keeps NaN as NULL."""
    return math.nan if value is None else value


def text_to_column(text: str) -> str | bytes:
    """Any text: as bytes where it holds half characters (lone surrogates), which UTF-8 forbids."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        return data
    return text


def text_from_column(value: str | bytes) -> str:
    """The text that `text_to_column` wrote."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def hex_to_bytes(text: str) -> bytes | None:
    """The bytes that plain lower-case hexadecimal stands for; None for any other text."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return data if data.hex() == text else None


def base64_to_bytes(text: str) -> bytes | None:
    """The bytes that base64 stands for; None for text that they would not give back."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return data if base64.b64encode(data).decode() == text else None
