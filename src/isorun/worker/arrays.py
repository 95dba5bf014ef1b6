"""Arrays of a training: weights as digests, predictions packed.

A digest is position-sensitive: SHA-256 over name, dtype, shape and bytes of every array, in order. Two are equal
exactly when all arrays have the same names, types, shapes and bits. Predictions are little-endian numbers,
zlib-compressed, base64: integers are classes, in the smallest type that holds them; floats are scores, as float32.
NumPy is never imported here for the training's sake: arrays bring it along, and lists are packed with the standard
library.
"""

from __future__ import annotations

import array
import base64
import hashlib
import sys
import zlib
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from . import frameworks
from .frameworks.base import framed

DEFAULT_NAME = "predictions"

_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))
# dtype name, array typecode, lowest and highest value; the first that fits is taken.
_INTEGER_TYPES = (
    ("uint8", "B", 0, 2**8 - 1),
    ("int8", "b", -(2**7), 2**7 - 1),
    ("uint16", "H", 0, 2**16 - 1),
    ("int16", "h", -(2**15), 2**15 - 1),
    ("uint32", "I", 0, 2**32 - 1),
    ("int32", "i", -(2**31), 2**31 - 1),
    ("uint64", "Q", 0, 2**64 - 1),
    ("int64", "q", -(2**63), 2**63 - 1),
)


def digest(obj: Any, most_bytes: int | None = None) -> str:
    """The digest of a model, a state, or any nesting of mappings and sequences of arrays and plain values.

    Raises TypeError for something whose bits it cannot see, ValueError for arrays of more bytes than were allowed.
    """
    hasher = hashlib.sha256()
    leaves = list(_leaves("", obj))
    size = sum(getattr(leaf, "nbytes", 0) for _, leaf in leaves) if most_bytes is not None else 0
    if most_bytes is not None and size > most_bytes:
        raise ValueError(f"{size} bytes of weights are more than {most_bytes}")
    for name, leaf in leaves:
        if leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes)):
            framed(hasher.update, name, type(leaf).__name__, repr(leaf))
        elif isinstance(leaf, Exception):  # why something had no digest when it could still be seen
            raise TypeError(str(leaf))
        elif not any(framework.hash_array(hasher.update, name, leaf) for framework in frameworks.every()):
            what = f"{name or 'the object'} is a {type(leaf).__name__}"
            raise TypeError(f"{what}; models, arrays and nestings have a digest")
    return hasher.hexdigest()


def _leaves(name: str, obj: Any) -> Iterator[tuple[str, Any]]:
    children = None if type(obj) in _PLAIN else _children(obj)  # a forest has a hundred thousand of them
    if children is None:
        yield name, obj
        return
    # The container itself is hashed too, so that an empty one differs from none.
    yield name, f"{type(children).__name__}[{len(children)}]"
    for key, child in children.items():
        yield from _leaves(f"{name}/{key}", child)


def _children(obj: Any) -> dict[Any, Any] | None:
    for framework in frameworks.every():
        children = framework.children(obj)
        if children is not None:
            return children
    if isinstance(obj, Mapping):
        return dict(obj)
    return dict(enumerate(obj)) if isinstance(obj, (list, tuple)) else None


class Packed(NamedTuple):
    """One packed array, its fields named as in the `predictions` event."""

    pred_kind: str
    dtype: str
    shape: tuple[int, ...]
    data: str


def by_name(predictions: Any) -> dict[str, Any]:
    """The arrays by name: a mapping as it is, anything else under the default name."""
    if isinstance(predictions, Mapping):
        return {str(name): values for name, values in predictions.items()}
    return {DEFAULT_NAME: predictions}


def pack(values: Any) -> Packed:
    """Pack an array or a (nested) sequence of numbers. Raises TypeError or ValueError for anything else."""
    values = frameworks.as_array(values)
    return _pack_array(values) if hasattr(values, "dtype") else _pack_sequence(values)


def _pack_array(values: Any) -> Packed:
    kind = values.dtype.kind
    if kind == "f":
        return _packed("score", "float32", values.shape, values.astype("<f4").tobytes())
    if kind not in "bui":
        raise TypeError(f"found an array of {values.dtype}; integers (classes) or floats (scores) are allowed")
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    name, code = _smallest_integer(low, high)
    return _packed("class", name, values.shape, values.astype(f"<{code}").tobytes())


def _pack_sequence(values: Any) -> Packed:
    shape = _shape(values)
    flat = list(_flat(values, len(shape)))
    if not all(isinstance(value, (int, float)) for value in flat):
        raise TypeError(f"found {type(values).__name__} with other things than numbers; numbers are allowed")
    if any(isinstance(value, float) for value in flat):
        return _packed("score", "float32", shape, _bytes_of("f", flat))
    name, code = _smallest_integer(min(flat, default=0), max(flat, default=0))
    return _packed("class", name, shape, _bytes_of(code, flat))


def _shape(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"found {type(values).__name__}; an array or a list of numbers is allowed")
    inner = values[0] if values else 0
    return (len(values), *_shape(inner)) if isinstance(inner, (list, tuple)) else (len(values),)


def _flat(values: Sequence[Any], depth: int) -> Iterable[Any]:
    if depth == 1:
        return values
    width = len(values[0])
    if any(not isinstance(row, (list, tuple)) or len(row) != width for row in values):
        raise ValueError("the rows differ in length; rows of equal length are allowed")
    return [value for row in values for value in _flat(row, depth - 1)]


def _smallest_integer(low: int, high: int) -> tuple[str, str]:
    for name, code, least, most in _INTEGER_TYPES:
        if least <= low and high <= most:
            return name, code
    raise ValueError(f"the integers from {low} to {high} do not fit into 64 bits")


def _bytes_of(code: str, flat: list[Any]) -> bytes:
    packed = array.array(code, flat)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _packed(kind: str, dtype: str, shape: Sequence[int], data: bytes) -> Packed:
    text = base64.b64encode(zlib.compress(data, 6)).decode("ascii")
    return Packed(kind, dtype, tuple(int(size) for size in shape), text)
