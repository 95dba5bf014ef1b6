"""Names and versions of packages: found, pushed, yanked. What a viewer may not see does not exist for him.

A version is immutable: the same bytes again are the same answer, and other bytes are refused. One that turned out to be
wrong is yanked, with a reason: it stays for those who name it, and is no more what a name alone means.

Tiers: a package is self-reported; or replicated, by those who pushed another package of theirs that says so. Who pushed
a package himself does not count, wherever he pushed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.errors import InputError, RegistryConflict, RegistryDenied, RegistryError, RegistryMissing, harmless
from isorun.packages.names import ADDRESS, PackageName, Wanted
from isorun.registry import Scope, Viewer
from isorun.registry.audit import append, now, row_digest
from isorun.registry.database import AbstractDatabase, Rows
from isorun.study.records import RunState

__all__ = [
    "REPLICATED",
    "SELF_REPORTED",
    "VERSION_ROW",
    "Index",
    "NamedVersion",
    "Pushed",
    "Received",
    "ReplicatingPackage",
]

SELF_REPORTED: Final = "self-reported"
REPLICATED: Final = "replicated"
_FOUND_AT_ONCE: Final = 100
_MOST_WORDS: Final = 20
_MARKS: Final = "marks"
_LONGEST_REASON: Final = 500
_COLUMNS: Final = (
    "names.owner, names.project, names.name, names.public, versions.version, versions.digest, versions.address, "
    "versions.size, versions.pushed_by, versions.pushed_at, versions.replicates, versions.summary, versions.yanked_at, "
    "versions.yanked_by, versions.yank_reason"
)
VERSION_ROW: Final = "versions.pushed_at, versions.replicates, versions.summary, versions.words"
"""What of a version never changes and is not itself in the audit log, which has a digest of it."""
_FROM: Final = "FROM versions JOIN names ON names.id = versions.name_id"
_REPLICATING_COLUMNS: Final = (
    "versions.pushed_by, names.owner || '/' || names.project || '/' || names.name, versions.version, versions.address"
)


@dataclass(frozen=True, slots=True, order=True)
class ReplicatingPackage:
    """A package that says it replicates another one. by: who pushed it; package: OWNER/PROJECT/NAME@VERSION."""

    by: str
    package: str
    address: str

    def __str__(self) -> str:
        return f"{self.by} ({self.package})"

    def to_json(self) -> dict[str, str]:
        """Plain JSON."""
        return {"by": self.by, "package": self.package, "address": self.address}


@dataclass(frozen=True, slots=True)
class NamedVersion:
    """One version of a package. replications: packages of others that replicate it; digest: SHA-256 of the file."""

    name: PackageName
    public: bool
    version: int
    digest: str
    address: str
    size: int
    pushed_by: str
    pushed_at: str
    replicates: str
    summary: dict[str, Any]
    yanked_at: str
    yanked_by: str
    yank_reason: str
    replications: tuple[ReplicatingPackage, ...] = ()

    @property
    def replicated_by(self) -> tuple[str, ...]:
        """Who pushed packages that replicate it."""
        return tuple(dict.fromkeys(one.by for one in self.replications))

    @property
    def tier(self) -> str:
        """How far others vouch for it."""
        return REPLICATED if self.replications else SELF_REPORTED

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        yank = {"at": self.yanked_at, "by": self.yanked_by, "reason": self.yank_reason}
        return {
            "name": str(self.name),
            "version": self.version,
            "address": self.address,
            "sha256": self.digest,
            "bytes": self.size,
            "public": self.public,
            "pushed_by": self.pushed_by,
            "pushed_at": self.pushed_at,
            "tier": self.tier,
            "replicated_by": list(self.replicated_by),
            "replications": [one.to_json() for one in self.replications],
            "replicates": self.replicates or None,
            "yanked": yank if self.yanked_at else None,
            "package": {name: said for name, said in self.summary.items() if name != _MARKS},
        }


@dataclass(frozen=True, slots=True)
class Received:
    """A file that was verified and kept. summary: what is in it; public: whether all see it, if its name is new."""

    digest: str
    size: int
    summary: dict[str, Any]
    replicates: str = ""
    public: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """What came of a push. new: whether it was not there before."""

    version: NamedVersion
    new: bool


class Index:
    """What is in a registry."""

    def __init__(self, database: AbstractDatabase) -> None:
        self._database = database

    def search(self, viewer: Viewer, words: str = "", *, most: int = 20, after: str = "") -> list[NamedVersion]:
        """The latest version of each package that all words are found in, by name. after: the last name seen."""
        conditions, values = _latest_with(viewer, words)
        full = "names.owner || '/' || names.project || '/' || names.name"
        question = f"SELECT {_COLUMNS} {_FROM} WHERE {conditions} AND {full} > ? ORDER BY {full} LIMIT ?"
        values += [harmless(after), min(max(most, 1), _FOUND_AT_ONCE)]
        return self._database.read(lambda rows: _versions(rows, viewer, rows.all(question, *values)))

    def newest(self, viewer: Viewer, words: str, most: int) -> list[NamedVersion]:
        """The same, those first that were pushed last."""
        conditions, values = _latest_with(viewer, words)
        question = f"SELECT {_COLUMNS} {_FROM} WHERE {conditions} ORDER BY versions.id DESC LIMIT ?"
        return self._database.read(lambda rows: _versions(rows, viewer, rows.all(question, *values, most)))

    def count(self, viewer: Viewer, words: str) -> int:
        """How many packages there are that all words are found in."""
        conditions, values = _latest_with(viewer, words)
        ((every,),) = self._database.read(lambda rows: rows.all(f"SELECT count(*) {_FROM} WHERE {conditions}", *values))
        return int(every)

    def versions(self, viewer: Viewer, name: PackageName) -> list[NamedVersion]:
        """All versions of a package, the latest first; yanked ones are among them."""
        found = self._database.read(lambda rows: self._named(rows, viewer, name))
        if not found:
            raise _missing(str(name))
        return found

    def version(self, viewer: Viewer, wanted: Wanted) -> NamedVersion:
        """The version that is asked for; the latest that was not yanked where none is said."""
        if wanted.name is None:
            return self.addressed(viewer, wanted.address)[0]
        found = self.versions(viewer, wanted.name)
        fitting = [item for item in found if item.version == wanted.version or not (wanted.version or item.yanked_at)]
        if not fitting:
            raise RegistryMissing(
                f"there is no {wanted}",
                found=f"versions {', '.join(str(item.version) for item in found)}",
                hint="" if wanted.version else "all versions were yanked: name one to have it anyway",
            )
        return fitting[0]

    def addressed(self, viewer: Viewer, address: str) -> list[NamedVersion]:
        """All versions that have this address, those first that were not yanked."""
        conditions, values = _visible(viewer)
        question = (
            f"SELECT {_COLUMNS} {_FROM} WHERE {conditions} AND versions.address = ? "
            "ORDER BY versions.yanked_at <> '', versions.id LIMIT ?"
        )
        found = self._database.read(
            lambda rows: _versions(rows, viewer, rows.all(question, *values, _address(address), _FOUND_AT_ONCE))
        )
        if not found:
            raise _missing(address)
        return found

    def replications(self, viewer: Viewer, address: str) -> list[NamedVersion]:
        """Packages of others that say they replicate this one."""
        self.addressed(viewer, address)
        return self._database.read(
            lambda rows: _versions(rows, viewer, _replicating(rows, viewer, _COLUMNS, _address(address)))
        )

    def refuse_push(self, viewer: Viewer, name: PackageName, replicates: str = "") -> None:
        """RegistryDenied before anything is received from somebody who may not push it."""
        if not viewer.may(Scope.PUSH, name.owner):
            ask = f"ask who acts for {name.owner}, or push it under a name of yours: {viewer.user}/…"
            limited = f"this token is for packages of {', '.join(sorted(viewer.owners))} alone; log in with another one"
            hint = ask if viewer.user in viewer.owners else limited
            raise RegistryDenied(f"you may not push packages of {name.owner}", hint=hint)
        if replicates:
            self.addressed(viewer, replicates)

    def offered(self, viewer: Viewer, wanted: Wanted, digest: str, replicates: str = "") -> NamedVersion | None:
        """The version that these bytes are already, or None where they may be pushed; RegistryConflict otherwise."""
        name = wanted.name
        assert name is not None
        self.refuse_push(viewer, name, replicates)

        def work(rows: Rows) -> NamedVersion | None:
            known = _known(rows, name)
            if digest in known and wanted.version in {0, known[digest]}:
                return _one(rows, viewer, name, known[digest])
            _refuse_version(name, wanted.version, known.get(digest, 0), max(known.values(), default=0))
            return None

        return self._database.read(work)

    def add(self, viewer: Viewer, wanted: Wanted, received: Received) -> Pushed:
        """Name a file that is kept: as the version that is said, or as the next one."""
        name = wanted.name
        assert name is not None
        self.refuse_push(viewer, name, received.replicates)
        if received.replicates == received.summary["address"]:
            raise RegistryError("a package does not replicate itself", found=received.replicates)
        if received.replicates:
            _refuse_no_replication(self.addressed(viewer, received.replicates), received)
        return self._database.write(lambda rows: _add(rows, viewer, Wanted(name, wanted.version), received))

    def yank(self, viewer: Viewer, wanted: Wanted, reason: str) -> NamedVersion:
        """Take a version out of what its name means, saying why."""
        said = harmless(reason).strip()[:_LONGEST_REASON]
        if not said:
            raise RegistryError("a yank needs a reason", hint="--reason 'the test data were trained on'")
        return self._yanked(viewer, wanted, said)

    def unyank(self, viewer: Viewer, wanted: Wanted) -> NamedVersion:
        """Take a yank back."""
        return self._yanked(viewer, wanted, "")

    def show_to_all(self, viewer: Viewer, name: PackageName, *, public: bool) -> None:
        """Let everyone who reaches the registry see a package, or only those who act for its owner."""
        if not viewer.may(Scope.ADMIN, name.owner):
            if not self._database.read(lambda rows: self._named(rows, viewer, name)):
                raise _missing(str(name))
            raise RegistryDenied(f"you may not say who sees packages of {name.owner}")

        def work(rows: Rows) -> None:
            found = rows.one("SELECT id, public FROM names WHERE owner = ? AND project = ? AND name = ?", *_parts(name))
            if found is None:
                raise _missing(str(name))
            if bool(found[1]) != public:
                rows.all("UPDATE names SET public = ? WHERE id = ?", int(public), found[0])
                append(rows, viewer.user, "published" if public else "hidden", str(name))

        self._database.write(work)

    def digests(self) -> set[str]:
        """The files that are named: all others may be swept."""
        return {digest for (digest,) in self._database.read(lambda rows: rows.all("SELECT digest FROM versions"))}

    def _named(self, rows: Rows, viewer: Viewer, name: PackageName) -> list[NamedVersion]:
        conditions, values = _visible(viewer)
        question = (
            f"SELECT {_COLUMNS} {_FROM} WHERE {conditions} AND names.owner = ? AND names.project = ? "
            "AND names.name = ? ORDER BY versions.version DESC"
        )
        return _versions(rows, viewer, rows.all(question, *values, *_parts(name)))

    def _yanked(self, viewer: Viewer, wanted: Wanted, reason: str) -> NamedVersion:
        """reason: none takes the yank back."""
        found = self.version(viewer, wanted)
        if not viewer.may(Scope.YANK, found.name.owner):
            raise RegistryDenied(f"you may not yank packages of {found.name.owner}")

        def work(rows: Rows) -> None:
            there = rows.one(
                "SELECT versions.id, yanked_at, yank_reason FROM versions JOIN names ON names.id = name_id "
                "WHERE owner = ? AND project = ? AND name = ? AND version = ?",
                *_parts(found.name),
                found.version,
            )
            assert there is not None
            if (reason, bool(reason)) == (there[2], bool(there[1])):
                return
            row = (now(), viewer.user, reason) if reason else ("", "", "")
            rows.all("UPDATE versions SET yanked_at = ?, yanked_by = ?, yank_reason = ? WHERE id = ?", *row, there[0])
            said = {"reason": reason} if reason else {}
            append(rows, viewer.user, "yanked" if reason else "unyanked", f"{found.name}@{found.version}", **said)

        self._database.write(work)
        return self.version(viewer, Wanted(found.name, found.version))


def _refuse_no_replication(targets: Sequence[NamedVersion], received: Received) -> None:
    """Whoever packs another's runs anew has replicated nothing, nor has who ran another study or finished no run."""
    own, study = set(received.summary.get(_MARKS, ())), received.summary["study"]
    states = received.summary.get("states", {})
    if not states.get(RunState.FINISHED):
        told = ", ".join(f"{many} {state}" for state, many in states.items())
        raise RegistryError(
            "a package without a finished run replicates nothing",
            found=told or "no run",
            hint="isorun replicate makes runs again: push those that finished",
        )
    for target in targets:
        if own.intersection(target.summary.get(_MARKS, ())):
            raise RegistryError(
                "a package does not replicate runs that are in it",
                found=f"runs of {target.name}@{target.version}",
                hint="isorun replicate makes runs again: push those, and them alone",
            )
        if study != target.summary["study"]:
            raise RegistryError(
                "a package of another study is no replication",
                found=f"{study}, and {target.summary['study']} in {target.name}@{target.version}",
                hint="isorun replicate runs the study of a package again, under its name",
            )


def _add(rows: Rows, viewer: Viewer, wanted: Wanted, received: Received) -> Pushed:
    """The version that these bytes are already, or a new one with its line in the audit log."""
    name, digest, summary = wanted.name, received.digest, received.summary
    assert name is not None
    known = _known(rows, name)
    latest = max(known.values(), default=0)
    if digest in known and wanted.version in {0, known[digest]}:
        return Pushed(_one(rows, viewer, name, known[digest]), new=False)
    _refuse_version(name, wanted.version, known.get(digest, 0), latest)
    if not known:
        question = "INSERT INTO names (owner, project, name, public, made_at) VALUES (?, ?, ?, ?, ?)"
        rows.all(question, *_parts(name), int(received.public), now())
    number = latest + 1
    rows.all(
        "INSERT INTO versions "
        "(name_id, version, digest, address, size, pushed_by, pushed_at, replicates, summary, words) "
        "SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM names WHERE owner = ? AND project = ? AND name = ?",
        *(number, digest, summary["address"], received.size, viewer.user, now(), received.replicates),
        *(json.dumps(summary), _words(name, summary), *_parts(name)),
    )
    said = {"sha256": digest, "address": summary["address"], "bytes": received.size, "replicates": received.replicates}
    question = f"SELECT {VERSION_ROW} {_FROM} WHERE owner = ? AND project = ? AND name = ? AND version = ?"
    stored = rows.one(question, *_parts(name), number)
    assert stored is not None
    public = received.public and not known
    append(rows, viewer.user, "pushed", f"{name}@{number}", **said, public=public, row=row_digest(*stored))
    return Pushed(_one(rows, viewer, name, number), new=True)


def _known(rows: Rows, name: PackageName) -> dict[str, int]:
    """The files of a package by their digests, with the version that each is; RegistryMissing without its owner."""
    if rows.one("SELECT 1 FROM owners WHERE name = ?", name.owner) is None:
        # Reached only by those who may push for everybody: everyone else is denied before, whether it is there or not.
        hint = f"isorun registry join {name.owner} USER makes the group, isorun registry user {name.owner} the user"
        raise RegistryMissing(f"there is no owner {name.owner} here", hint=hint)
    question = f"SELECT digest, version {_FROM} WHERE owner = ? AND project = ? AND name = ?"
    return dict(rows.all(question, *_parts(name)))


def _refuse_version(name: PackageName, version: int, same: int, latest: int) -> None:
    """A version that is said has to be the next one."""
    if version in {0, latest + 1} and not same:
        return
    if same:
        raise RegistryConflict(f"{name}@{same} has these bytes already", hint=f"registry:{name}@{same}")
    if version <= latest:
        raise RegistryConflict(
            f"{name}@{version} is there already, with other bytes",
            allowed="a version never changes",
            hint=f"isorun push PACKAGE {name} makes version {latest + 1}",
        )
    raise RegistryConflict(
        f"{name}@{version} cannot be pushed yet", found=f"latest version {latest}", allowed=f"version {latest + 1}"
    )


def _one(rows: Rows, viewer: Viewer, name: PackageName, number: int) -> NamedVersion:
    """A version for whoever pushed it, who may have a token that reads nothing."""
    question = f"SELECT {_COLUMNS} {_FROM} WHERE names.owner = ? AND project = ? AND names.name = ? AND version = ?"
    return _versions(rows, viewer, rows.all(question, *_parts(name), number))[0]


def _visible(viewer: Viewer) -> tuple[str, list[object]]:
    """What is asked of every row that is shown."""
    owners: list[object] = [*sorted(owner for owner in viewer.owners if viewer.sees_private(owner))]
    if viewer.everything and Scope.READ in viewer.scopes:
        return "1 = 1", []
    places = ", ".join("?" for _ in owners)
    return (f"(names.public = 1 OR names.owner IN ({places}))" if owners else "names.public = 1"), owners


def _latest_with(viewer: Viewer, words: str) -> tuple[str, list[object]]:
    """What is asked of the latest version of each package that all words are found in."""
    asked = list(dict.fromkeys(re.findall(r"[^\s,;]+", words.lower())))
    if len(asked) > _MOST_WORDS:
        raise InputError(
            "a search has too many words",
            found=f"{len(asked):,} different ones",
            allowed=f"up to {_MOST_WORDS}, all of which have to be found",
        )
    conditions, values = _visible(viewer)
    for word in asked:
        conditions += " AND versions.words LIKE ? ESCAPE '!'"
        values.append(f"%{_escaped(word)}%")
    latest = "(SELECT max(v.version) FROM versions AS v WHERE v.name_id = names.id AND v.yanked_at = '')"
    return f"{conditions} AND versions.version = {latest}", values


def _versions(rows: Rows, viewer: Viewer, found: Sequence[tuple[Any, ...]]) -> list[NamedVersion]:
    made = []
    for owner, project, name, public, version, digest, address, size, by, at, replicates, summary, *yank in found:
        others = sorted(
            ReplicatingPackage(user, f"{package}@{number}", theirs)
            for user, package, number, theirs in _replicating(rows, viewer, _REPLICATING_COLUMNS, address)
        )
        fixed = (PackageName(owner, project, name), bool(public), int(version), digest, address, int(size), by, at)
        yanked_at, yanked_by, reason = yank
        told = json.loads(summary)
        made.append(NamedVersion(*fixed, replicates, told, yanked_at, yanked_by, reason, tuple(others)))
    return made


def _replicating(rows: Rows, viewer: Viewer, columns: str, address: str) -> list[tuple[Any, ...]]:
    """Visible packages of others that say they replicate this address, and were not yanked."""
    conditions, values = _visible(viewer)
    question = (  # all of it ours; what others say are values
        f"SELECT {columns} {_FROM} WHERE {conditions} AND versions.replicates = ? AND versions.address <> ? "  # noqa: S608
        "AND versions.yanked_at = '' AND versions.pushed_by NOT IN (SELECT pushed_by FROM versions WHERE address = ?) "
        "ORDER BY versions.id LIMIT ?"
    )
    return rows.all(question, *values, address, address, address, _FOUND_AT_ONCE)


def _parts(name: PackageName) -> tuple[str, str, str]:
    return (name.owner, name.project, name.name)


def _address(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise RegistryError("this is no address of a package", found=repr(text[:80]), allowed="sha256: and 64 digits")
    return text


def _words(name: PackageName, summary: dict[str, Any]) -> str:
    """What a package is found by, in small letters."""
    texts = [str(name), summary["study"], *summary["metrics"], *summary["environments"], summary["address"]]
    return "\n".join(texts).lower()[:10_000]


def _escaped(word: str) -> str:
    return re.sub("([!%_])", r"!\1", harmless(word))[:200]


def _missing(what: str) -> RegistryMissing:
    return RegistryMissing(f"there is no {what} here that you may see", hint="isorun search WORDS, or isorun login URL")
