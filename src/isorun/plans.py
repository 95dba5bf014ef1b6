"""Plans of sequential decisions, kept in the store from the first look on: one that changes with the results is none.

A plan belongs to the two sides, whatever metric or order they are asked about in: their runs are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from isorun.analysis.sequential.plan import Plan, continued
from isorun.errors import InputError, StoreError
from isorun.store.base import AbstractDocuments
from isorun.study.cells import Cell

__all__ = ["KeptPlan"]


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The plan of one comparison. cells: the ids of the first cell of either side, which stand for their content."""

    documents: AbstractDocuments
    cells: tuple[str, ...]

    @classmethod
    def of(cls, documents: AbstractDocuments, sides: Iterable[Cell]) -> KeptPlan:
        """The plan kept for these two sides, named by the content of their cells."""
        return cls(documents, tuple(sorted(cell.id for cell in sides)))

    def allows(self, asked: Plan) -> Plan:
        """The plan to go on with: as asked at first, and later as far as the one kept allows it."""
        try:
            document = self.documents.read(self._name)
            kept = None if document is None else Plan.from_json(document["plan"])
        except (StoreError, ValueError, KeyError, TypeError, InputError) as error:
            what = f"the plan kept in {self.documents.place(self._name)} cannot be read: {error}"
            hint = "decide in a new --store: no error rate can be held without the plan of the earlier looks"
            raise InputError(what, hint=hint) from None
        return asked if kept is None else continued(kept, asked, looks_made=1)

    def keep(self, plan: Plan) -> None:
        """Keep the plan at its first look, and its stage as it goes on."""
        self.documents.write(self._name, {"cells": list(self.cells), "plan": plan.to_json()})

    @property
    def _name(self) -> str:
        return hashlib.sha256(json.dumps(self.cells).encode()).hexdigest()[:16]
