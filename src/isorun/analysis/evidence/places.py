"""Places: on which hosts and devices, and by which executors, the runs of a group were made.

Several hosts within a group are part of its spread, which is told. Where the sides of a comparison have no host in
common, and several runs come from each host, host and side cannot be told apart: the test takes the runs for
independent draws, and what a host contributes is drawn once for all of its runs. Where hardly a host made two runs of a
side, all of that is in the spread that the test sees, also when chance left the sides no host in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.evidence import Condition, first_of, some
from isorun.study.records import RunRecord

__all__ = ["Places", "between_places", "places", "several_places"]

_TOLD: Final = 4
_RUNS_A_HOST: Final = 2
"""With so many runs from each host on a side, 5 % of errors are 11 % where hosts move a result as much as seeds do."""
_HERE: Final = "local"
_ON_ITS_MACHINE: Final = frozenset(("", _HERE, "worker"))
"""Executors that are one piece of code: a run of the machine that isorun itself is on."""
_BOTH_ON_ALL: Final = (
    "make them again, both sides on the same hosts: isorun run … --store NEW --queue, then isorun worker NEW on each"
)


@dataclass(frozen=True, slots=True)
class Places:
    """hosts: those that are known. devices: of each host, those that runs were lent. runs: how many there are."""

    hosts: frozenset[str] = frozenset()
    devices: frozenset[tuple[str, str]] = frozenset()
    executors: frozenset[str] = frozenset()
    runs: int = 0


def places(records: Sequence[RunRecord]) -> Places:
    """Where the runs were made, as far as their records say it."""
    executors = (str(record.where.get("executor", "")) for record in records)
    return Places(
        hosts=frozenset(host for record in records if (host := _host(record))),
        devices=frozenset((_host(record), device) for record in records for device in record.devices),
        executors=frozenset(_HERE if name in _ON_ITS_MACHINE else name for name in executors),
        runs=len(records),
    )


def _host(record: RunRecord) -> str:
    return str(record.where.get("host") or "")


def several_places(groups: Mapping[str, Places]) -> Iterator[Condition]:
    """One sentence for all groups whose runs were made on several hosts, or by several executors.

    Devices of one host are not told here: where they differ in kind, `machine-differs` says so.
    """
    mixed = {label: one for label, one in groups.items() if len(one.hosts) > 1 or len(one.executors) > 1}
    if not mixed:
        return
    hosts, executors = _all(one.hosts for one in mixed.values()), _all(one.executors for one in mixed.values())
    parts = [f"on {_listed(hosts, 'host')}"] if len(hosts) > 1 else []
    parts += [f"by {_listed(executors, 'executor')}"] if len(executors) > 1 else []
    yield Condition(
        "made-in-several-places",
        f"runs of one group were made {' and '.join(parts)}: what these differ in is part of the spread",
        "nothing, where that is meant; runs of one place alone take a new --store",
        tuple(mixed),
    )


def between_places(a: Places, b: Places, *, known_to_differ: bool) -> Iterator[Condition]:
    """What the places of two sides have to do with the sides. known_to_differ: processor, device or versions do."""
    if a.runs < 2 or b.runs < 2 or not a.hosts or not b.hosts:
        return
    if not a.hosts & b.hosts:
        if any(side.runs >= _RUNS_A_HOST * len(side.hosts) for side in (a, b)):
            one, other = (first_of(hosts, _TOLD, ", ") for hosts in sorted((sorted(a.hosts), sorted(b.hosts))))
            kinds = ", and these differ in processor, device or library versions" if known_to_differ else ""
            yield Condition(
                "sides-differ-in-host",
                f"all runs of one side were made on {one}, and all of the other on {other}{kinds}: what the hosts do "
                "to the result cannot be told from what is compared",
                _BOTH_ON_ALL,
                voids=known_to_differ,
            )
    elif a.hosts == b.hosts and len(a.hosts) == 1 and _one_device_each(a, b):
        (_, first), (_, second) = sorted((*a.devices, *b.devices))
        yield Condition(
            "sides-differ-in-device",
            f"all runs of one side were made on the device {first}, and all of the other on {second}: what the devices "
            "do to the result cannot be told from what is compared",
            "make them again in a new --store, where both sides have either device: --jobs 2",
        )


def _one_device_each(a: Places, b: Places) -> bool:
    return len(a.devices) == len(b.devices) == 1 and a.devices != b.devices


def _all(sets: Iterable[frozenset[str]]) -> list[str]:
    return sorted(frozenset().union(*sets))


def _listed(names: Sequence[str], noun: str) -> str:
    return f"{some(len(names), noun)} ({first_of(names, _TOLD, ', ')})"
