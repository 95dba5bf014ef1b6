"""What a built site links to: `python docs/building/links.py build/site` says what is missing, and exits with 1.

Every link within the site must lead to a file and to an anchor in it, and no page may ask another host for anything.
Links that a reader may follow to other hosts are not tried.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["faults"]

_ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
# In a style sheet; in a script only what asks for something, since texts of licences name hosts as well.
_ASKS = re.compile(
    r"""(?:url\(\s*['"]?|@import\s+['"]|fetch\(\s*['"]|import\(\s*['"]|\.src\s*=\s*['"])((?:https?:)?//[^'")\s]+)"""
)


class _Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the element links to or loads."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and {"canonical", "next", "prev"}.isdisjoint(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        self.loads.extend(given[name] for name in ("src", "srcset", "data", "poster", "action") if name in given)


def faults(site: Path) -> Iterator[str]:
    """A sentence for every link that leads nowhere and for everything that another host is asked for."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.loads:
            if _ELSEWHERE.match(target):
                yield f"{name} asks another host: {target}"
            elif not target.startswith("data:"):
                yield from _dead(path, target, site, pages)
        for target in page.links:
            if not _ELSEWHERE.match(target) and not target.startswith("mailto:"):
                yield from _dead(path, target, site, pages)
    for path in sorted(path for ending in ("css", "js") for path in site.rglob(f"*.{ending}")):
        for asked in _ASKS.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} asks another host: {asked}"


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _dead(path: Path, link: str, site: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    shown = f"{path.relative_to(site)} links to {link}"
    if target.is_dir():
        target /= "index.html"
    if site not in target.parents or not target.is_file():
        yield f"{shown}, which is not there"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in {"", *pages[target].anchors}:
        yield f"{shown}, which has no such anchor"


def main(site: Path) -> int:
    """Print the faults; 1 where there is any."""
    found = list(faults(site.resolve()))
    print("\n".join(found) or f"{sum(1 for _ in site.rglob('*.html'))} pages: every link within leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
