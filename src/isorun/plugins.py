"""Parts that other distributions bring: found by entry point, and loaded only when they are asked for.

A distribution declares in its pyproject.toml, for example

    [project.entry-points."isorun.executors"]
    cluster = "our_package.cluster:open_cluster"

Reading what is installed takes longer than everything else at the start of a command, so it happens only when a name is
not one of isorun's own. What is broken is named by whoever asks for it; all else works. `make` is for parts that a
factory makes, `load` for those that are there as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import PluginError, foreign_errors, known_names

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "DETECTORS",
    "ENGINES",
    "ENVIRONMENTS",
    "EXECUTORS",
    "PAPERS",
    "SOURCES",
    "STORES",
    "TRACKERS",
    "brought",
    "load",
    "make",
]

STORES: Final = "isorun.stores"
EXECUTORS: Final = "isorun.executors"
ENVIRONMENTS: Final = "isorun.environments"
SOURCES: Final = "isorun.sources"
PAPERS: Final = "isorun.papers"
DETECTORS: Final = "isorun.detectors"
ENGINES: Final = "isorun.engines"
TRACKERS: Final = "isorun.trackers"


@cache
def brought(group: str) -> Mapping[str, EntryPoint]:
    """What the installed distributions bring in this group, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to load, and seldom needed

    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def load(group: str, name: str, own: Iterable[str] = ()) -> Any:
    """The part of this name; an error lists the known ones. own: the names that isorun itself has for such parts."""
    points = brought(group)
    if name not in points:
        raise PluginError(
            f"there is no {_kind(group)} {name!r}",
            allowed=known_names(name, [*own, *(other for other in points if other not in own)]),
            hint=f"a distribution can bring one: entry-point group {group!r}",
        )
    return _loaded(points[name])


def make(group: str, name: str, base: type, *arguments: Any, own: Iterable[str] = (), **options: Any) -> Any:
    """What the factory of this name makes; PluginError where it raises, or makes something that is no `base`."""
    factory = load(group, name, own=own)
    what = f"the {_kind(group)} {name!r}"
    with foreign_errors(lambda said: PluginError(f"{what} cannot be opened", found=said)):
        made = factory(*arguments, **options)
    if not isinstance(made, base):
        raise PluginError(f"{what} cannot be used", found=type(made).__name__, allowed=f"a subclass of {base.__name__}")
    return made


def _kind(group: str) -> str:
    return group.rpartition(".")[2].removesuffix("s")


def _loaded(point: EntryPoint) -> Any:
    whose = f" of the distribution {point.dist.name}" if point.dist is not None else ""

    def refusal(said: str) -> PluginError:
        return PluginError(
            f"{_kind(point.group)} {point.name!r}{whose} cannot be loaded",
            found=f"{point.value}: {said}",
            hint="update or remove that distribution; all else works without it",
        )

    with foreign_errors(refusal, but=()):
        return point.load()
