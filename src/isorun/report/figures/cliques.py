"""Cliques: the largest sets of approaches of which no two can be told apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set

__all__ = ["maximal_cliques"]


def maximal_cliques(names: Sequence[str], alike: Collection[tuple[str, str]]) -> list[tuple[str, ...]]:
    """All sets of two or more names whose pairs are all alike and that no further name can join.

    Members and sets are in the order of `names`. The algorithm is that of Bron and Kerbosch (1973) with a pivot.
    """
    near: dict[str, set[str]] = {name: set() for name in names}
    for first, second in alike:
        near[first].add(second)
        near[second].add(first)
    place = {name: number for number, name in enumerate(names)}
    found = [sorted(place[name] for name in clique) for clique in _grown(frozenset(), set(names), set(), near)]
    return [tuple(names[number] for number in clique) for clique in sorted(found) if len(clique) > 1]


def _grown(
    clique: frozenset[str], candidates: set[str], finished: set[str], near: Mapping[str, Set[str]]
) -> Iterator[frozenset[str]]:
    """The maximal cliques that hold `clique`, some of the candidates, and none of the finished ones."""
    if not candidates and not finished:
        yield clique
        return
    pivot = max(candidates | finished, key=lambda name: len(near[name] & candidates))
    for name in candidates - near[pivot]:
        yield from _grown(clique | {name}, candidates & near[name], finished & near[name], near)
        candidates = candidates - {name}
        finished = finished | {name}
