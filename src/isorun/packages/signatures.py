"""Who signed a package: Ed25519 (RFC 8032) over its address.

Checking is done here, in plain Python, so that everybody can check who can read; it takes some milliseconds and holds
no secret. Signing is done by `cryptography` (`isorun[sign]`), see isorun/share/keys.py.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Final

from isorun.packages import SIGNATURE, refused
from isorun.packages.canonical import jcs, read_jcs

__all__ = ["Signature", "fingerprint", "is_signed_by", "signed_content"]

_FORMAT: Final = 1
_ALGORITHM: Final = "ed25519"
_CONTEXT: Final = b"isorun package\0"
_P: Final = 2**255 - 19
_L: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT: Final = pow(2, (_P - 1) // 4, _P)
_Point = tuple[int, int, int, int]
_NEUTRAL: Final = (0, 1, 1, 0)


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature as it lies in a package. key: the public key that it says it was made with."""

    key: bytes
    signature: bytes

    def to_bytes(self) -> bytes:
        """The member, in the form of RFC 8785."""
        texts = {
            name: base64.b64encode(value).decode() for name, value in (("key", self.key), ("signature", self.signature))
        }
        return jcs({"format": _FORMAT, "algorithm": _ALGORITHM, **texts})

    @classmethod
    def from_bytes(cls, data: bytes) -> Signature:
        """The signature of a package; PackageError where it is none."""
        read = read_jcs(data, SIGNATURE)
        if not isinstance(read, dict) or set(read) != {"format", "algorithm", "key", "signature"}:
            raise refused(f"{SIGNATURE}: this is no signature")
        if (read["format"], read["algorithm"]) != (_FORMAT, _ALGORITHM):
            raise refused(f"{SIGNATURE}: a signature of another kind", allowed=f"{_ALGORITHM}, format {_FORMAT}")
        return cls(_bytes(read["key"], 32), _bytes(read["signature"], 64))

    def is_valid_for(self, address: str) -> bool:
        """Whether the owner of its key signed the package with this address."""
        return is_signed_by(self.key, signed_content(address), self.signature)


def _bytes(text: object, size: int) -> bytes:
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != size or base64.b64encode(data).decode() != text:
        raise refused(f"{SIGNATURE}: {size} bytes as base64 are needed", f"{text!r}"[:120])
    return data


def signed_content(address: str) -> bytes:
    """What is signed: the address, and that it is one of a package."""
    return _CONTEXT + address.encode("ascii")


def fingerprint(key: bytes) -> str:
    """A short name of a public key, which no other key has."""
    return f"SHA256:{base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip('=')}"


def is_signed_by(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this is a signature of the message under the public key (RFC 8032, section 5.1.7, strictly).

    Keys and points of small order are refused: with such a key one signature would fit many messages.
    """
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, commitment = _point(key), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if owner is None or commitment is None or scalar >= _L or _same(_times(8, owner), _NEUTRAL):
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % _L
    return _same(_times(scalar, _base()), _sum(commitment, _times(challenge, owner)))


def _base() -> _Point:
    found = _point((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))
    assert found is not None
    return found


def _point(data: bytes) -> _Point | None:
    """The point that these bytes stand for, in extended coordinates; None where there is none."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= _P:
        return None
    squared = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(squared, (_P + 3) // 8, _P)
    if (x * x - squared) % _P:
        x = x * _ROOT % _P
    if (x * x - squared) % _P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _sum(a: _Point, b: _Point) -> _Point:
    left, right = (a[1] - a[0]) * (b[1] - b[0]) % _P, (a[1] + a[0]) * (b[1] + b[0]) % _P
    both, twice = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    e, f, g, h = right - left, twice - both, twice + both, right + left
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(factor: int, point: _Point) -> _Point:
    found: _Point = _NEUTRAL
    while factor:
        if factor & 1:
            found = _sum(found, point)
        point = _sum(point, point)
        factor >>= 1
    return found


def _same(a: _Point, b: _Point) -> bool:
    return (a[0] * b[2] - b[0] * a[2]) % _P == 0 and (a[1] * b[2] - b[1] * a[2]) % _P == 0
