"""Texts that lead out of a folder, in the ways that servers were fooled by: more than 500."""

from __future__ import annotations

import itertools

from isorun.packages.names import valid_part

TARGETS = ("etc/passwd", "index.sqlite", "windows/win.ini")
DOTS = (
    "..",
    "%2e%2e",
    "%2E%2e",
    ".%2e",
    "%2e.",
    "%252e%252e",
    "..%00",
    "..;",
    "..%01",
    "．．",
    "%c0%ae%c0%ae",
    "%u002e%u002e",
)
SLASHES = (
    "/",
    "%2f",
    "%2F",
    "%5c",
    "\\",
    "%252f",
    "%255c",
    "//",
    "%c0%af",
    "%ef%bc%8f",
    "/./",
    ";/",
    "%09/",
    "#/",
    "?/",
)
ALONE = (
    "/etc/passwd", "%2fetc%2fpasswd", "file:///etc/passwd", "file:%2f%2f%2fetc%2fpasswd", "C:%5cwindows", "%00",
    "a%00b", "~", "~root", "%7eroot", "$HOME", "%24HOME", "${HOME}", "`id`", "$(id)", "|id", ";id", "&id", "%0aid",
    "%0d%0aSet-Cookie:a=b", "a%0ab", "con", "nul.txt", ".git", ".htaccess", "..", ".", "...", "....", ". .", "%20",
    "%09", "a%20b", "*", "%2a", "a:b", "::$DATA", "a::$DATA", "CON:", "'", '"', "' OR '1'='1",
    "1;DROP TABLE versions", "%27%20OR%201=1--", "1%20UNION%20SELECT", "<script>", "%3Cscript%3E",
    "javascript:alert(1)", "{{7*7}}", "%7b%7b7*7%7d%7d", "${7*7}", "%ff", "%fe%ff", "%ed%a0%80", "a" * 300,
    "a" * 1900, "A", "É", "%c3%a9", "-rf", "--help", "a..b", "a--b", "_a", "a_", ".a", "a.", "a%2e", "a%2e%2e",
    "sha256:" + "0" * 63 + "%2f", "sha256:%2e%2e", "0", "-1", "1.0", "1e9", "0x1", "01", "999999999999999999999999",
    "NaN", "null", "None", "true", "[]", "{}", "@1", "1@2", "latest%00", "new%2f..", "%", "%2", "%zz", "+", "%2b",
)  # fmt: skip


def traversals() -> list[str]:
    """Each once; none is a name, a version, a number or an address."""
    made = [
        f"{slash.join([dot] * depth)}{slash}{target.replace('/', slash)}"
        for dot, slash, depth, target in itertools.product(DOTS, SLASHES, (1, 4), TARGETS)
    ]
    return [text for text in dict.fromkeys([*ALONE, *made]) if not valid_part(text)]
