"""What a failed run said in the end."""

from __future__ import annotations

__all__ = ["last_words"]


def last_words(log: str) -> str:
    """The last line that is not indented: in a traceback and in isorun's own errors it says what is wrong."""
    lines = [line for line in log.splitlines() if line.strip()]
    leading = [line for line in lines if not line[0].isspace()]
    return (leading or lines or [""])[-1].strip()
