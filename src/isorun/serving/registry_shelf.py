"""The packages of a registry as a shelf: of each its latest version, and any version by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isorun.errors import InputError, RegistryError
from isorun.packages.names import parse_wanted
from isorun.serving.shelves import AbstractShelf, OpenedStudy, ShelfEntry, digest_of, not_on_shelf, opened_package

if TYPE_CHECKING:
    from isorun.registry import Viewer
    from isorun.registry.index import NamedVersion
    from isorun.registry.opening import Registry

__all__ = ["RegistryShelf"]

_AT_ONCE: Final = 100
_MOST_LISTED: Final = 1_000
_LARGEST: Final = 64 * 2**20
"""A larger file is pulled and looked at where it is wanted: pages of many studies share this server's memory."""


class RegistryShelf(AbstractShelf):
    """The packages that the viewer may see. A version never changes; who replicated it may, and counts as a change."""

    is_registry = True

    def __init__(self, name: str, registry: Registry) -> None:
        self.name = name
        self.title = "registry"
        self._registry = registry

    def entries(self, viewer: Viewer, text: str = "") -> Sequence[ShelfEntry]:
        """The latest version of each package."""
        found: list[NamedVersion] = []
        after, part = "", self._registry.index.search(viewer, text, most=_AT_ONCE)
        while part and len(found) < _MOST_LISTED and str(part[-1].name) != after:
            found += part
            after = str(part[-1].name)
            part = self._registry.index.search(viewer, text, most=_AT_ONCE, after=after)
        return sorted(map(_entry, found), key=lambda entry: entry.when, reverse=True)

    def _version(self, name: str, viewer: Viewer) -> NamedVersion:
        try:
            return self._registry.index.version(viewer, parse_wanted(name))
        except (InputError, RegistryError):
            raise not_on_shelf(name) from None

    def revision(self, name: str, viewer: Viewer) -> str:
        """Of the file, and of what others say of it."""
        version = self._version(name, viewer)
        return digest_of((str(version.version), version.digest, version.yank_reason, *map(str, version.replications)))

    def opened(self, name: str, viewer: Viewer) -> OpenedStudy:
        """The study of that version, with all its runs."""
        version = self._version(name, viewer)
        if version.size > _LARGEST:
            raise InputError(
                f"{name} is too large to be shown here",
                found=f"{version.size / 2**20:,.0f} MiB",
                allowed=f"{_LARGEST // 2**20} MiB",
                hint=f"isorun pull registry:{version.name}@{version.version}, then isorun serve FILE",
            )
        source = f"registry:{version.name}@{version.version}"
        opened = opened_package(_entry(version), self._registry.blobs.path(version.digest), source)
        return OpenedStudy(
            opened.entry,
            self.revision(name, viewer),
            opened.design,
            opened.records,
            opened.told,
            source,
            analyse=opened.analyse,
        )


def _entry(version: NamedVersion) -> ShelfEntry:
    summary = version.summary
    tier = f"yanked: {version.yank_reason}" if version.yanked_at else version.tier
    return ShelfEntry(
        f"{version.name}@{version.version}",
        int(summary.get("runs", 0)),
        version.pushed_at,
        version.address,
        tier,
        version.replications,
        (str(summary.get("study", "")), *map(str, summary.get("metrics", ()))),
    )
