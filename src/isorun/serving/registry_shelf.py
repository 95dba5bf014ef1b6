"""The packages of a registry as a shelf: of each its latest version, and any version by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from isorun.errors import InputError, PackageError, RegistryError
from isorun.packages import NoRoom
from isorun.packages.names import parse_wanted
from isorun.serving.shelves import (
    MOST_LISTED,
    AbstractShelf,
    OpenedStudy,
    ShelfEntry,
    cannot_be_shown,
    digest_of,
    not_on_shelf,
    opened_package,
)

if TYPE_CHECKING:
    from isorun.registry import Viewer
    from isorun.registry.index import NamedVersion
    from isorun.registry.opening import Registry

__all__ = ["RegistryShelf"]

_LARGEST: Final = 64 * 2**20
"""A larger file is pulled and looked at where it is wanted: pages of many studies share this server's memory."""
_MOST_OUT: Final = 512 * 2**20
"""So much may come out of one: an enemy packs a thousand times the size of the file, and a page keeps all of it."""
_MOST_GROUPS: Final = 2_000
_MOST_LOOKS: Final = 50_000_000
"""Every metric is looked for among all that every run left: some seconds of this server's time."""


class RegistryShelf(AbstractShelf):
    """The packages that the viewer may see. A version never changes; who replicated it may, and counts as a change."""

    is_registry = True

    def __init__(self, name: str, registry: Registry) -> None:
        self.name = name
        self.title = "registry"
        self._registry = registry
        self._damaged: dict[str, str] = {}

    def entries(self, viewer: Viewer, text: str = "") -> Sequence[ShelfEntry]:
        """The latest version of each package."""
        return [self._entry(version) for version in self._registry.index.newest(viewer, text, MOST_LISTED)]

    def unlisted(self, viewer: Viewer, text: str = "") -> int:
        """Those that were pushed first, where there are very many."""
        return max(0, self._registry.index.count(viewer, text) - MOST_LISTED)

    def _version(self, name: str, viewer: Viewer) -> NamedVersion:
        try:
            return self._registry.index.version(viewer, parse_wanted(name))
        except (InputError, RegistryError):
            raise not_on_shelf(name) from None

    def revision(self, name: str, viewer: Viewer) -> str:
        """Of the file, and of what others say of it."""
        version = self._version(name, viewer)
        others = (self._original(version, viewer), *map(str, version.replications))
        return digest_of((str(version.version), version.digest, version.yank_reason, *others))

    def _original(self, version: NamedVersion, viewer: Viewer) -> str:
        """The package that this one says it replicates, as the viewer may see it; empty where there is none for him."""
        if not version.replicates:
            return ""
        try:
            found = self._registry.index.addressed(viewer, version.replicates)[0]
        except RegistryError:
            return ""
        return f"{found.name}@{found.version}"

    def opened(self, name: str, viewer: Viewer) -> OpenedStudy:
        """The study of that version, with all its runs."""
        version = self._version(name, viewer)
        if version.size > _LARGEST:
            raise _too_large(version, f"{version.size / 2**20:,.0f} MiB", f"{_LARGEST // 2**20} MiB")
        opened = self._opened_file(version)
        _refuse_much_work(version, opened)
        return OpenedStudy(
            replace(opened.entry, original=self._original(version, viewer)),
            self.revision(name, viewer),
            opened.design,
            opened.records,
            opened.told,
            opened.source,
            analyse=opened.analyse,
        )

    def _opened_file(self, version: NamedVersion) -> OpenedStudy:
        """The file, which was whole when it was pushed; that it is so no more is remembered for the list."""
        self._damaged.pop(version.digest, None)  # it may have been mended
        if (entry := self._entry(version)).problem:
            raise cannot_be_shown(entry)
        try:
            source = f"registry:{version.name}@{version.version}"
            return opened_package(entry, self._registry.blobs.path(version.digest), source, _MOST_OUT)
        except NoRoom:
            raise _too_large(version, "far more comes out of it", f"{_MOST_OUT // 2**20} MiB in memory") from None
        except PackageError as error:
            self._damaged[version.digest] = f"its file is damaged: {error.what}"
            raise cannot_be_shown(self._entry(version)) from None

    def _entry(self, version: NamedVersion) -> ShelfEntry:
        """The version as it is listed, with what is known to be wrong with its file; not every byte is read."""
        try:
            size = self._registry.blobs.path(version.digest).stat().st_size
            other = "" if size == version.size else "its file has another size than when it was pushed"
        except (OSError, ValueError):
            other = "its file is not there"
        problem = other or self._damaged.get(version.digest, "")
        remedy = "isorun registry verify FOLDER, by whoever has the files of the registry" if problem else ""
        return replace(_entry(version), problem=problem, remedy=remedy)


def _refuse_much_work(version: NamedVersion, opened: OpenedStudy) -> None:
    """A small file may name very many groups and metrics, and all who read here wait for what is made of them."""
    groups = len({record.cell.group for record in opened.records})
    if groups > _MOST_GROUPS:
        raise _too_large(version, f"{groups:,} groups", f"{_MOST_GROUPS:,}")
    metrics = len(set(opened.design.metrics).union(*(record.results for record in opened.records)))
    left = sum(len(one.results) + len(one.series) + len(one.per_class) for one in opened.records)
    if metrics * left > _MOST_LOOKS:
        raise _too_large(version, f"{metrics:,} metrics, and {left:,} that runs left", "fewer of both")


def _too_large(version: NamedVersion, found: str, allowed: str) -> InputError:
    return InputError(
        f"{version.name}@{version.version} is too large to be shown here",
        found=found,
        allowed=allowed,
        hint=f"isorun pull registry:{version.name}@{version.version}, then isorun serve FILE",
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
        replicates=version.replicates,
    )
