"""Packages, users and registries that tests are made of."""

from __future__ import annotations

import functools
import io

from isorun.packages.names import parse_wanted
from isorun.packages.writing import PackageWriter
from isorun.registry import Scope, Viewer
from isorun.registry.people import TokenAsked
from isorun.study.design import Approach, Study, document_without_secrets
from isorun.study.records import RunState
from isorun.testing.made_records import make_cell, make_record


@functools.cache
def package(seed=1, name="toy", *more, state=RunState.FINISHED):
    """The bytes of a whole package; other seeds, other bytes. more: seeds of further runs."""
    file = io.BytesIO()
    writer = PackageWriter(file)
    study = Study(name=name, approaches={"lenet": Approach("lenet", ("python", "train.py"))})
    writer.add_study(document_without_secrets(study))
    records = [make_record(make_cell(one), points=5, state=state) for one in (seed, *more)]
    writer.add_records(sorted(records, key=lambda record: record.cell.id))
    writer.finish(name)
    return file.getvalue()


def push(registry, viewer, name, data, **options):
    with registry.blobs.incoming() as part:
        part.write(data)
        return registry.push(viewer, parse_wanted(name), part, **options)


def tokens(registry):
    """Tokens by user: root administrates, ann and bob act for the group lab, carl is alone.

    reader: a token of ann's that only reads.
    """
    people = registry.people
    made = {"root": people.set_up(Viewer(scopes=frozenset({Scope.SET_UP})), "root").token}
    root = people.identify(made["root"])
    made |= {name: people.add_user(root, name).token for name in ("ann", "bob", "carl")}
    people.add_member(root, "lab", "ann")
    people.add_member(root, "lab", "bob")
    made["reader"] = people.add_token(people.identify(made["ann"]), TokenAsked((Scope.READ,))).token
    return made


def viewers(registry):
    """Who these are, as the index is told."""
    return {name: registry.people.identify(token) for name, token in tokens(registry).items()}
