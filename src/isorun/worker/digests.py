"""Position-sensitive digests of weights: SHA-256 over name, dtype, shape and bytes of every array, in order.

Two digests are equal exactly when all arrays have the same names, types, shapes and bits.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from typing import Any, Callable, Iterator, Mapping

Hash = Callable[[bytes], None]


def digest(obj: Any) -> str:
    """The digest of a model, a state, or any nesting of mappings and sequences of arrays and plain values.

    Raises TypeError for something whose bits it cannot see.
    """
    hasher = hashlib.sha256()
    for name, leaf in _leaves("", obj):
        _update(hasher.update, name, leaf)
    return hasher.hexdigest()


def _leaves(name: str, obj: Any) -> Iterator[tuple[str, Any]]:
    children = _children(obj)
    if children is None:
        yield name, obj
        return
    # The container itself is hashed too, so that an empty one differs from none.
    yield name, f"{type(children).__name__}[{len(children)}]"
    for key, child in children.items():
        yield from _leaves(f"{name}/{key}", child)


def _children(obj: Any) -> dict[Any, Any] | None:
    if callable(getattr(obj, "state_dict", None)):
        return dict(obj.state_dict())
    if callable(getattr(obj, "get_weights", None)):
        return dict(enumerate(obj.get_weights()))
    if isinstance(obj, Mapping):
        return dict(obj)
    return dict(enumerate(obj)) if isinstance(obj, (list, tuple)) else None


def _update(update: Hash, name: str, leaf: Any) -> None:
    if hasattr(leaf, "detach") and hasattr(leaf, "data_ptr"):
        _update_torch(update, name, leaf)
    elif leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes)):
        _framed(update, name, type(leaf).__name__, repr(leaf))
    else:
        _update_array(update, name, leaf)


def _update_torch(update: Hash, name: str, tensor: Any) -> None:
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.is_sparse or tensor.is_quantized:
        raise TypeError(f"{name or 'the tensor'} is sparse or quantized; dense tensors have a digest")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    size = plain.numel() * plain.element_size()
    _framed(update, name, str(plain.dtype), str(tuple(plain.shape)))
    if size:
        # Memory as it lies: works for bfloat16 and without NumPy, and copies nothing.
        update((ctypes.c_char * size).from_address(plain.data_ptr()))


def _update_array(update: Hash, name: str, leaf: Any) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(leaf, "__array__"):
        raise TypeError(f"{name or 'the object'} is a {type(leaf).__name__}; models, arrays and nestings have a digest")
    array = numpy.ascontiguousarray(leaf)
    if array.dtype.hasobject:
        raise TypeError(f"{name or 'the array'} holds Python objects; arrays of numbers have a digest")
    shape = numpy.shape(leaf)
    _framed(update, name, str(array.dtype), str(tuple(shape)))
    update(array.reshape(-1).view(numpy.uint8) if array.size else b"")


def _framed(update: Hash, *parts: str) -> None:
    """Each part with its length, so that no two sequences of parts look alike."""
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        update(b"%d:" % len(encoded))
        update(encoded)
