"""The agenda of workers, without a worker: what is offered, and no longer is."""

from pathlib import Path

from isorun import taking
from isorun.offers import Offer
from isorun.scheduling import Observer
from isorun.study.cells import cells_of
from isorun.study.design import study_from_document
from isorun.taking import WhatIsLeft
from isorun.testing.memory_store import MemoryStore


class SaidOffers:
    """What a store offers is what a test says."""

    def __init__(self, offer):
        self.offer = offer

    def look(self):
        return {"toy": self.offer}


def test_cells_of_a_study_that_was_kept_anew_are_taken_as_it_offers_them_now(monkeypatch):
    monkeypatch.setattr(taking, "_DOCUMENTS_SECONDS", 0.0)
    monkeypatch.setattr(taking, "_DOCUMENTS_AT_WORK_SECONDS", 0.0)
    study = study_from_document({"repeats": 4, "approaches": {"a": {"command": "true"}}}, Path(), "toy")
    first, second, third, fourth = cells_of(study)
    offers = SaidOffers(Offer(study, (first, second, third)))
    agenda = WhatIsLeft(MemoryStore(), offers, Observer())
    assert agenda.propose(lambda: 1) == [first]
    offers.offer = Offer(study, (first, third, fourth))
    assert agenda.propose(lambda: 1) == [third], "the second is no longer offered"
    offers.offer = Offer(study, ())
    assert agenda.propose(lambda: 1) == ()
    assert not agenda.is_waiting()
    offers.offer = Offer(study, (second, fourth))
    monkeypatch.setattr(agenda, "_look_at", 0.0)
    assert agenda.propose(lambda: 4) == [second, fourth], "offered again, and those at work only once"
