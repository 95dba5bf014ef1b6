"""Keeping secrets out of what a run prints: the values of secret variables are replaced before anything is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from isorun.worker.redaction import REDACTED

__all__ = ["Mask"]

# A shorter value is as likely a word that the training prints for other reasons.
_SHORTEST_BYTES: Final = 8


class Mask:
    """Replaces secrets in a stream of bytes, also one that comes in pieces."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = {os.fsencode(secret) for secret in secrets}
        # The longest first: one secret may be the start of another.
        self._secrets = sorted((value for value in values if len(value) >= _SHORTEST_BYTES), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The next bytes that may be kept; what may be the start of a secret is held back until more comes."""
        if not self._secrets:
            return data
        text = self._pattern.sub(REDACTED.encode(), self._held + data)
        kept = len(text) - self._doubtful(text)
        self._held = text[kept:]
        return text[:kept]

    def rest(self) -> bytes:
        """What was held back, at the end of the stream."""
        rest, self._held = self._held, b""
        return rest

    def _doubtful(self, text: bytes) -> int:
        """How many bytes at the end are the start of a secret."""
        return max(_overlap(text, secret) for secret in self._secrets)


def _overlap(text: bytes, secret: bytes) -> int:
    """The longest end of the text that the secret starts with."""
    end = text[-(len(secret) - 1) :]
    start = end.find(secret[:1])
    while start >= 0:
        if secret.startswith(end[start:]):
            return len(end) - start
        start = end.find(secret[:1], start + 1)
    return 0
