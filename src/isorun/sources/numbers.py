"""Numbers in printed text: which stretches of a line are values, counts, or no numbers at all.

Times, dates, versions, addresses and numbers with a unit are recognised first, so that no part of them can be taken
for a value. A percent sign makes a fraction: "97.4%" is 0.974, and "9908/10000" is 0.9908.
"""

from __future__ import annotations

import re

__all__ = ["TOKEN", "count_of", "percentage", "read_number", "written_number"]

# The rest of a number whose first character has been read. Atomic groups, so that "1e-05" is never read as "1" with
# the unit "e", nor "0.5/x" as "0".
_THOUSANDS = r"(?:,\d{3})+(?![\d,])(?:\.\d+)?"
_REST = rf"""(?>(?:(?<=\d)(?:\d{{0,2}}{_THOUSANDS}|\d*\.?\d*)
                  |(?<=[-+])(?:\d{{1,3}}{_THOUSANDS}|\d+\.?\d*|\.\d+)
                  |(?<=\.)\d+)
                (?:[eE][-+]?\d+)?)"""

# The first character stands outside the alternatives: this lets the matcher skip from one candidate to the next,
# which halves the time. What it matched is joined to the groups by `written_number` and `count_of`.
TOKEN = re.compile(
    rf"""
    [-+.\dnNiI](?<![\w.@/$-].)
    (?:
      (?P<junk>
          (?<=\d)\d*(?:[:-]\d+)+(?:[.,]\d+)?(?:[TZ][\d:.]*)?        # 10:00:00,123  2024-01-02  1-2
        | (?<=\d)\d*/\d+/\d+                                       # 01/02/2024
        | (?<=\d)\d*(?:\.\d+){{2,}}[\w.+:-]*                         # 2.13.0+cpu  127.0.0.1:6006
        | {_REST}(?:[A-Za-zµ_]\w*)(?:/\w+)?                         # 3ms/step  54.26it/s  12.5MB
        | {_REST}\ (?:s|secs?|seconds|ms|minutes|hours|it/s|s/it|[kKMGT]i?B)(?![\w/])
      )
    | (?<=\d)(?P<count>\d*)(?:\s*/\s*|\ (?:out\ )?of\ )(?P<total>\d+)(?![\w.]\d|/|\w)
    | (?P<number>{_REST})(?![\w/\\])(?P<percent>\s?%(?P<bar>\||\s?[━─█╸╺])?)?
    | (?P<word>(?<=[nN])[aA][nN]|(?<=[iI])nf(?:inity)?|(?<=[-+])(?:[nN][aA][nN]|[iI]nf(?:inity)?))(?![\w.])
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_MOST_DIGITS = 300


def written_number(token: re.Match[str]) -> str:
    """The number of a token as `float` reads it, without its percent sign."""
    end = token.end("word") if token["number"] is None else token.end("number")
    return token.string[token.start() : end].replace(",", "")


def count_of(token: re.Match[str]) -> tuple[int, int]:
    """The two numbers of "9908/10000"; counts too long to be any give (0, 0)."""
    if len(token[0]) > _MOST_DIGITS:
        return 0, 0
    return int(token.string[token.start() : token.end("count")]), int(token["total"])


def read_number(text: str) -> float | None:
    """The value of a written number, percentage or fraction; None when it is none of them."""
    match = TOKEN.fullmatch(text.strip())
    if match is None or match["junk"] is not None:
        return None
    if match["total"] is not None:
        count, total = count_of(match)
        return count / total if total else None
    return percentage(written_number(match)) if match["percent"] else float(written_number(match))


def percentage(written: str) -> float:
    """The fraction that a percentage stands for, rounded once: "97.4" is 0.974, not 0.9740000000000001."""
    takes_exponent = written[-1] in "0123456789." and "e" not in written.lower()
    return float(f"{written}e-2") if takes_exponent else float(written) / 100
