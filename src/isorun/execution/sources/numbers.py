"""Numbers in printed text: which stretches of a line are values, counts, or no numbers at all.

Times, dates, versions, addresses and numbers with a unit are recognised first, so that no part of them can be taken
for a value. A percent sign makes a fraction: "97.4%" is 0.974, and "9908/10000" is 0.9908.
"""

from __future__ import annotations

import re

__all__ = ["TOKEN", "read_number"]

# Atomic groups, so that "1e-05" is never read as "1" with the unit "e", nor "0.5/x" as "0".
_NUMBER = r"(?>[-+]?(?:\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"

TOKEN = re.compile(
    rf"""
    (?<![\w.@/\#$-])
    (?:
      (?P<junk>
          \d+(?:[:-]\d+)+(?:[.,]\d+)?(?:[TZ][\d:.]*)?         # 10:00:00,123  2024-01-02  1-2
        | \d+/\d+/\d+                                        # 01/02/2024
        | \d+(?:\.\d+){{2,}}[\w.+:-]*                          # 2.13.0+cpu  127.0.0.1:6006
        | {_NUMBER}(?:[A-Za-zµ_]\w*)(?:/\w+)?                   # 3ms/step  54.26it/s  12.5MB
        | {_NUMBER}\ (?:s|secs?|seconds|ms|minutes|hours|it/s|s/it|[kKMGT]i?B)(?![\w/])
      )
    | (?P<count>\d+)\s*/\s*(?P<total>\d+)(?![\w.]\d|/)
    | (?P<number>{_NUMBER})(?![\w/\\])(?P<percent>\s?%(?P<bar>\|)?)?
    | (?P<word>[-+]?(?:[nN][aA][nN]|[iI]nf(?:inity)?))(?![\w.])
    )
    """,
    re.VERBOSE,
)


def read_number(text: str) -> float | None:
    """The value of a written number, percentage or fraction; None when it is none of them."""
    stripped = text.strip()
    match = TOKEN.fullmatch(stripped)
    if match is None or match.lastgroup == "junk" or match["junk"] is not None:
        return None
    if match["count"] is not None:
        total = int(match["total"])
        return int(match["count"]) / total if total else None
    value = float((match["number"] or match["word"]).replace(",", ""))
    return value / 100 if match["percent"] else value
