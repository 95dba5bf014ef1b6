"""Packages, users and registries that tests are made of."""

from __future__ import annotations

import functools
import io

from isorun.packages.names import parse_wanted
from isorun.packages.writing import PackageWriter
from isorun.registry import Scope, Viewer
from isorun.study.design import Approach, Study, document_without_secrets
from isorun.testing.made_records import make_cell, make_record

ALL = frozenset({Scope.READ, Scope.PUSH, Scope.YANK, Scope.ADMIN})


@functools.cache
def package(seed=1, name="toy"):
    """The bytes of a whole package; other seeds, other bytes."""
    file = io.BytesIO()
    writer = PackageWriter(file)
    study = Study(name=name, approaches={"lenet": Approach("lenet", ("python", "train.py"))})
    writer.add_study(document_without_secrets(study))
    writer.add_records([make_record(make_cell(seed), points=5)])
    writer.finish(name)
    return file.getvalue()


def push(registry, viewer, name, data, **options):
    with registry.blobs.incoming() as part:
        part.write(data)
        return registry.push(viewer, parse_wanted(name), part, **options)


def people(registry):
    """Three users: root administrates, ann and bob share the group lab with nobody else; carl is alone."""
    people = registry.people
    root = people.identify(people.set_up(Viewer(scopes=frozenset({Scope.SET_UP})), "root").token)
    ann, bob, carl = (people.add_user(root, name).token for name in ("ann", "bob", "carl"))
    people.add_member(root, "lab", "ann")
    people.add_member(root, "lab", "bob")
    return {
        "root": root,
        **{name: people.identify(token) for name, token in (("ann", ann), ("bob", bob), ("carl", carl))},
    }
