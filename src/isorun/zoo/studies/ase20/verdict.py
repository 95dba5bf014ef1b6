"""The verdict on the paper: which of its findings our runs show, computed from them alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from isorun.report.numbers import count
from isorun.zoo.paper import smoke_verdict
from isorun.zoo.studies.ase20.evidence import Evidence
from isorun.zoo.studies.ase20.factor_lead import factor_lead, lead_sentence
from isorun.zoo.studies.ase20.factors import FactorShares
from isorun.zoo.studies.ase20.findings import Finding
from isorun.zoo.studies.ase20.nested_tables import nested_sentences

__all__ = ["verdict"]

_AMOUNTS: Final = {"1": "By default:", "2": "With the seed fixed:"}


def verdict(evidence: Evidence, scale: str, *, is_less: bool) -> Iterator[str]:
    """Sentences, the most important first. is_less: whether anything is less than was published."""
    if not evidence.finished:
        yield "No run has finished, so nothing can be said about the paper's findings."
        return
    if scale == "smoke":
        yield from smoke_verdict(evidence.finished)
        return
    ours = (*(nested_sentences(evidence.nested) if evidence.nested else ()), *_on_factors(evidence.shares))
    yield from ours
    if evidence.begun_groups or not ours:
        yield from _on_findings(evidence.findings, evidence.finished)
    if is_less:
        yield (
            f"Scale {scale} is less than was published (see Scaled down): what is seen compares in kind, not in size."
        )


def _on_findings(found: Sequence[Finding], finished: int) -> Iterator[str]:
    judged = [item for item in found if item.seen is not None and item.name != "ours"]
    if not judged:
        yield f"{count(finished, 'run')} finished, too few of any kind to judge a finding of the paper."
        return
    seen = [item for item in judged if item.seen]
    yield f"{len(seen)} of the {len(judged)} findings that {count(finished, 'run')} can judge are seen here, too."
    by_name = {item.name: item for item in judged}
    amounts = [
        f"{words} {by_name[name].ours}; published: {by_name[name].published}"
        for name, words in _AMOUNTS.items()
        if name in by_name
    ]
    if amounts:
        yield f"Accuracy of identical runs. {'. '.join(amounts)}."
    yield from (f"Not seen: {item.claim}. Here: {item.ours}." for item in judged if not item.seen)


def _on_factors(shares: Sequence[FactorShares]) -> Iterator[str]:
    for item in shares:
        lead = factor_lead(item)
        if lead is not None:
            yield lead_sentence(item, lead)
