"""Values taken out of a store after they were recorded: `isorun store redact`.

A value is replaced by the marker that withheld secrets have, wherever it stands: in records (packed, waiting, and in
the folders of runs), events, output, jobs and kept documents. Cells keep their ids (`Cell.known_as`), so that finished
runs are used again. A value that is short, or an ordinary word, number or path, would take much else with it: of such a
one only the fields of its variable are taken out, and `NAME=value`.

Every file is replaced as a whole, the database by a new one, which has no free pages of the old. What is to be taken
out stands in `redacting.json` from before the first change until after the last: whoever is killed in between leaves it
there, and the next call finishes what it says.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from isorun.errors import InputError, StoreBusy, StoreError, StudyError
from isorun.store import PLANS, REPLAYS, SEARCHES, STUDIES
from isorun.store.checking import existing, only_writer
from isorun.store.database import connect, create_database, reading, writing
from isorun.store.files import Files, FolderDocuments, NotAFile, reported
from isorun.store.folder import REDACTING, FolderStore
from isorun.store.rows import RecordReader, RecordWriter, Unwritable, remember_key
from isorun.store.salvage import RECORD_FILE
from isorun.study.cells import Cell
from isorun.study.design import Study, kept_study
from isorun.study.records import RunRecord, open_envelope, record_digest, sealed, sealed_and_gzipped
from isorun.study.searches import search_id
from isorun.worker.redaction import REDACTED, is_ordinary, without_colours

__all__ = ["Redacted", "is_too_common", "redact"]

_OWN_FIELDS: Final = frozenset(("env", "variables", "level_variables", "variables_read"))
"""Tables by the names of variables; those of the last one hold the start of a hash instead of the value."""
_HASHES: Final = "variables_read"
_DOCUMENTS: Final = frozenset((STUDIES, PLANS, SEARCHES, REPLAYS))
_OTHERS: Final = frozenset(("key", "packed", "writer.lock", "claims.lock", "store.sqlite", REDACTING))
_NEW: Final = "store.sqlite.redacted"
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,199}")
_FRAME: Final = re.compile(rb"\d{1,12} [0-9a-f]{8} (\d{1,18}) (\{.*\})", re.DOTALL)
_HASHED: Final = re.compile(r"<sha256:([0-9a-f]+)>")
_HALF_WRITTEN: Final = re.compile(r"\.\d+-[0-9a-f]{8}\.tmp\Z|record\.json\.gz\.[0-9a-f]{16}\.tmp\Z")
_MOST_PASSES: Final = 100

_A_COPY: Final = "a copy of a database, which may hold a value"
_BY_NAME: Final = "its name holds a value"
_NO_TEXT: Final = "it holds a value, and is neither text nor written by isorun"
_CUT: Final = "it is damaged, and was not looked into"
_STILL: Final = "something was written there meanwhile"
_BEGAN: Final = "runs began meanwhile, and may record a value again"


@dataclass(frozen=True, slots=True)
class Redacted:
    """What `redact` did, or with dry_run would do. records: how many of the database held something to take out.

    files: those that were replaced, the database not among them. fields_only: variables with a value too common to be
    looked for in texts. not_found: variables of which nothing is recorded. value_unknown: variables of which a hash
    alone was recorded, of a value that is known from nowhere, so that texts may still hold it. unreached: what still
    holds a value, or may hold one, and why. resumed: whether an earlier call, which was killed, is finished with this
    one.
    """

    store: str
    dry_run: bool
    records: int = 0
    files: tuple[str, ...] = ()
    fields_only: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    value_unknown: tuple[str, ...] = ()
    unreached: tuple[tuple[str, str], ...] = ()
    resumed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "store": self.store,
            "dry_run": self.dry_run,
            "records": self.records,
            "files": list(self.files),
            "fields_only": list(self.fields_only),
            "not_found": list(self.not_found),
            "value_unknown": list(self.value_unknown),
            "unreached": [{"where": where, "why": why} for where, why in self.unreached],
            "resumed": self.resumed,
        }


def is_too_common(value: str) -> bool:
    """Whether a text may hold the value for other reasons: it is short, a word, a number or a path."""
    return is_ordinary(value) or value in REDACTED or re.fullmatch(r"[\d_.,+eE-]+", value) is not None


def redact(
    folder: Path,
    names: Iterable[str] = (),
    *,
    values: Mapping[str, str] | None = None,
    literals: Iterable[str] = (),
    dry_run: bool = False,
    files: Files | None = None,
) -> Redacted:
    """Take out of the store what it holds of these variables: what their fields say, and the values given.

    values: by the names of variables. literals: values of no variable, of which none may be common. files: the file
    operations to use, which tests replace. StoreBusy while a run is in progress.
    """
    folder, files = existing(folder), files or Files()
    names = (*map(_checked_name, names), *(values or {}))
    literals = [_checked_literal(value) for value in literals]
    with FolderStore(folder, create=False, files=files) as store:  # which packs what waits
        _refuse_runs(store)
        with only_writer(folder, "redacted"):
            earlier = _begun(folder, files)
            wanted = _Wanted(tuple(dict.fromkeys((*names, *earlier["names"]))), store.key, apart=earlier["apart"])
            wanted.take(dict.fromkeys(literals, ""))
            wanted.take({value: name for name, value in (values or {}).items()})
            wanted.take(dict.fromkeys(earlier["values"], ""))
            going = _Going(folder, files, wanted)
            if not dry_run:
                going.remove_half_written()
            going.learn()
            found = going.through()
            if not dry_run and (found.records or found.files):
                files.write_whole(folder / REDACTING, json.dumps(wanted.to_json()).encode())
                found = going.all_replaced(found)
            left = dict.fromkeys([str(folder / "claims")] if store.holders() else [], _BEGAN)
            left |= going.left
            if not dry_run and not left:
                files.unlink(folder / REDACTING)
    return Redacted(
        str(folder),
        dry_run,
        found.records,
        tuple(found.files),
        tuple(sorted(wanted.common)),
        tuple(name for name in dict.fromkeys(names) if name not in wanted.seen),
        tuple(wanted.value_unknown()),
        tuple(sorted({**found.unreached, **left}.items())),
        bool(earlier["names"] or earlier["values"]),
    )


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        hint = "a value is given in a file, or with --value - on standard input: as an argument everybody could read it"
        raise InputError("that is no name of an environment variable", allowed="letters, digits and _", hint=hint)
    return name


def _checked_literal(value: str) -> str:
    if is_too_common(value):
        raise InputError(
            "the value is too common to be taken out of texts",
            found="nothing" if not value else f"{len(value)} characters: a word, a number, a path, or too short",
            allowed="what no text holds for other reasons",
            hint="isorun store redact NAME takes out the fields of a variable, whatever its value",
        )
    return value


def _refuse_runs(store: FolderStore) -> None:
    if holders := store.holders():
        first = holders[0]
        raise StoreBusy(
            f"nothing can be taken out of {store.folder} while runs are in progress",
            found=f"{len(holders)} of them, such as that of cell {first.cell_id} (process {first.pid} on {first.host})",
            hint="wait for them to end, or stop them, and run the same command again",
        )


def _begun(folder: Path, files: Files) -> dict[str, Any]:
    """What an earlier call was to take out that was killed."""
    begun: dict[str, Any] = {"names": [], "values": [], "apart": False}
    with reported("reading what was being taken out", folder / REDACTING), suppress(FileNotFoundError):
        try:
            begun |= json.loads(files.read(folder / REDACTING))
        except (NotAFile, ValueError):
            hint = f"rm {folder / REDACTING}, and name again all that was to be taken out"
            raise StoreError(f"{folder / REDACTING} cannot be read", found="it is damaged", hint=hint) from None
    return begun


class _Wanted:
    """What is to be taken out, and how texts and JSON look without it.

    apart: markers differ by value, under the store's key, because cells would be the same without. common: variables
    with a value that is taken out of their own fields alone. seen: variables of which something was found. hashed:
    starts of the hashes that stand in fields instead of a value, by variable.
    """

    def __init__(self, names: tuple[str, ...], key: bytes, *, apart: bool) -> None:
        self.names = frozenset(names)
        self.values: dict[str, str] = {}
        self.common: set[str] = set()
        self.seen: set[str] = set()
        self.hashed: dict[str, set[str]] = {}
        self._told: set[str] = set()
        self.apart = apart
        self.key = key
        self._forms: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        told = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        said = rf"(?P<kept>(?<!\w)(?P<name>{told})(?:=|[\"']: ?(?=[\"'])))"
        value = r"(?P<value>\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',;)\]}\\]+)"
        self._spoken = re.compile(said + value) if names else None

    def to_json(self) -> dict[str, Any]:
        """For the file that says what is being done."""
        return {"names": sorted(self.names), "values": sorted(self.values), "apart": self.apart}

    def take(self, values: Mapping[str, str]) -> None:
        """Values with the variables they belong to, empty for none."""
        self._told |= {hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest() for value in values}
        for value, name in values.items():
            if is_too_common(value):
                self.common |= {name} if name and value else set()
            else:
                self.values[value] = name or self.values.get(value, "")
        self._prepare()

    def value_unknown(self) -> list[str]:
        """Variables with a hash that is of no value that was given or found: texts were searched without it."""
        return sorted(
            name
            for name, starts in self.hashed.items()
            if not all(any(told.startswith(start) for told in self._told) for start in starts)
        )

    def tell_apart(self) -> None:
        """Let each value have its own marker."""
        self.apart = True
        self._prepare()

    def _prepare(self) -> None:
        whole = {line for value in self.values for line in (value, *value.splitlines())}
        pieces = {line for line in whole if line in self.values or not is_too_common(line)}
        self._forms = {form: piece for piece in pieces for form in _forms(piece)}
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def marker(self, value: str) -> str:
        """What stands in place of the value."""
        if not self.apart:
            return REDACTED
        return f"{REDACTED}~{hmac.new(self.key, os.fsencode(value), hashlib.sha256).hexdigest()[:4]}"

    def text(self, text: str) -> str:
        """The text without them; a marker may stand so that another one begins before it."""
        for _ in range(_MOST_PASSES):
            before, text = text, self._once(text)
            if text == before:
                break
        return text

    def _once(self, text: str) -> str:
        if self._pattern is not None:
            if "\x1b[" in text and self._pattern.search(plain := without_colours(text)):
                text = plain
            text = self._pattern.sub(self._replacement, text)
        return text if self._spoken is None else self._spoken.sub(self._spoken_replacement, text)

    def _replacement(self, found: re.Match[str]) -> str:
        value = self._forms[found[0]]
        self.seen.add(self.values.get(value, ""))
        return self.marker(value)

    def _spoken_replacement(self, found: re.Match[str]) -> str:
        self.seen.add(found["name"])
        value = found["value"].strip("\"'")
        return found[0] if _is_taken_out(value) else f"{found['kept']}{self.marker(value)}"

    def data(self, data: bytes) -> bytes:
        """The same for bytes that are mostly text."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def node(self, node: Any, within: str = "") -> Any:
        """JSON without them. A cell that is not as it was keeps its id."""
        if isinstance(node, str):
            return self.text(node)
        if isinstance(node, list):
            return [self.node(item, within) for item in node]
        if not isinstance(node, dict):
            return node
        made: dict[str, Any] = {}
        for name, item in node.items():
            own = within in _OWN_FIELDS and name in self.names
            made[self._free(self.text(name), made)] = self._own(name, item) if own else self.node(item, name)
        if "environment_content" in node and "id" in node and made != node:
            made["known_as"] = node["id"]
        return made

    def _own(self, name: str, item: Any) -> Any:
        self.seen.add(name)
        if isinstance(item, list):
            return [self._own(name, one) for one in item]
        return self.marker(item) if isinstance(item, str) and item and not _is_taken_out(item) else item

    @staticmethod
    def _free(name: str, taken: Mapping[str, Any]) -> str:
        """The name, numbered where another is the same without the values."""
        return next(free for n in range(1, len(taken) + 3) if (free := name if n == 1 else f"{name} {n}") not in taken)

    def learned(self, node: Any, within: str = "") -> Iterator[tuple[str, str]]:
        """The values of the variables that JSON shows, with their names."""
        if isinstance(node, list):
            for item in node:
                yield from self.learned(item, within)
        elif isinstance(node, dict):
            for name, item in node.items():
                if within in _OWN_FIELDS and name in self.names:
                    given = [one for one in (item if isinstance(item, list) else [item]) if isinstance(one, str)]
                    starts = {start for one in given if (start := _start_of_hash(one, within))}
                    self.hashed.setdefault(name, set()).update(starts)
                    yield from ((one, name) for one in given if within != _HASHES and not _is_hidden(one))
                else:
                    yield from self.learned(item, name)

    def record(self, record: RunRecord) -> RunRecord:
        """The record without them; itself where it holds none."""
        content = replace(record, series={}).to_json()
        made = self.node(content)
        metrics = {name: self.text(name) for name in record.series}
        if made == content and all(before == after for before, after in metrics.items()):
            return record
        series: dict[str, Any] = {}
        for metric, item in record.series.items():
            series[self._free(metrics[metric], series)] = item
        return RunRecord.from_json({name: made[name] for name in made if name != "series"}, series=series)


def _forms(value: str) -> set[str]:
    """How a value is written: as it is, as JSON, in an address, in base64 by itself."""
    as_json = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    data = os.fsencode(value)
    in_base64 = base64.b64encode(data).decode().rstrip("=")  # the last ones depend on what follows
    return {value, *as_json, quote(data, safe=""), quote(data), in_base64}


def _is_taken_out(text: str) -> bool:
    return text.startswith(REDACTED)


def _is_hidden(text: str) -> bool:
    """Whether it is no value, but what stands for one."""
    return not text or _is_taken_out(text) or _HASHED.fullmatch(text) is not None


def _start_of_hash(text: str, within: str) -> str:
    """What is known of a value of which a hash is recorded; empty where it is no hash."""
    if within == _HASHES:
        return "" if _is_hidden(text) else text
    found = _HASHED.fullmatch(text)
    return found[1] if found else ""


@dataclass(slots=True)
class _Found:
    """What holds something to be taken out: records of the database, files; and what cannot be changed, and why."""

    records: int = 0
    files: list[str] = field(default_factory=list)
    unreached: dict[str, str] = field(default_factory=dict)


class _Going:
    """Goes through all files of a store. left: what was found again after all was replaced."""

    def __init__(self, folder: Path, files: Files, wanted: _Wanted) -> None:
        self.left: dict[str, str] = {}
        self._folder = folder
        self._files = files
        self._wanted = wanted
        self._known: dict[str, tuple[str, str]] = {}

    def remove_half_written(self) -> None:
        """Files that a killed process left under names of their own: no run is in progress, so nobody writes them."""
        for path in self._paths():
            if _HALF_WRITTEN.search(path.name):
                with reported("removing a half-written file", path):
                    self._files.unlink(path)

    def learn(self) -> None:
        """Take the values that the fields of the variables show; see whether cells are told apart without them."""
        if self._wanted.names:
            pairs: dict[str, str] = {}
            for node in self._all_json():
                pairs |= self._wanted.learned(node)
            self._wanted.take(pairs)
        if not self._wanted.apart and not self._cells_differ():
            self._wanted.tell_apart()

    def _all_json(self) -> Iterator[Any]:
        for record in self._packed():
            yield replace(record, series={}, predictions=()).to_json()
        for path in self._paths():
            with suppress(OSError, ValueError, zlib.error, EOFError):
                data = self._files.read(path)
                if path.name == RECORD_FILE:
                    data = gzip.decompress(data)
                if path.suffix == ".jsonl":
                    yield from (json.loads(found[2]) for line in data.splitlines() if (found := _FRAME.fullmatch(line)))
                elif path.suffix in {".json", ".gz"}:
                    yield json.loads(data)

    def _cells_differ(self) -> bool:
        """Whether no two cells become the same, and every kept study can still be read."""
        known: dict[str, str] = {}
        for record in self._packed():
            cell = self._wanted.record(record).cell
            if known.setdefault(_content_id(cell), cell.id) != cell.id:
                return False
        studies = FolderDocuments(self._folder, STUDIES, self._files)
        for name in studies.names():
            before = _document(studies, name)
            if _study(before) is not None and _study(self._wanted.node(before)) is None:
                return False
        return True

    def through(self, *, replacing: bool = False) -> _Found:
        """What holds something to be taken out, which with `replacing` is taken out."""
        found = _Found(records=self._database(replacing=replacing))
        for path in self._paths():
            with reported("taking values out", path):
                new = self._without(path, found)
            if new is not None:
                found.files.append(str(path))
                if replacing:
                    with reported("taking values out", path):
                        new()
        return found

    def all_replaced(self, found: _Found) -> _Found:
        """Replace all that was found, and look again: something may have been written meanwhile."""
        self.through(replacing=True)
        again = self.through()
        if again.records or again.files:
            self.through(replacing=True)
            again = self.through()
        self.left = dict.fromkeys([*again.files, *([str(self._folder)] if again.records else [])], _STILL)
        return _Found(found.records, found.files, again.unreached)

    def _packed(self) -> Iterator[RunRecord]:
        database = self._folder / "store.sqlite"
        with closing(connect(database)) as connection, reading(connection, database):
            for _, record in RecordReader(connection).each():
                if isinstance(record, StoreError):
                    raise record.at(str(self._folder))
                yield record

    def _database(self, *, replacing: bool) -> int:
        """How many records hold something; a new database takes the place of one that has such."""
        changed, made = 0, []
        for record in self._packed():
            made.append(self._wanted.record(record))
            changed += made[-1] is not record
            if made[-1].cell.known_as:
                self._known[_content_id(made[-1].cell)] = (made[-1].cell.id, made[-1].cell.approach)
        if changed and replacing:
            self._put_in_place(made)
        return changed

    def _put_in_place(self, records: Iterable[RunRecord]) -> None:
        new = self._folder / _NEW
        with reported("making a new database", new):
            for leftover in (new, new.with_name(f"{_NEW}-journal")):
                self._files.unlink(leftover)
            create_database(new, self._files)
            with closing(connect(new)) as connection, writing(connection, new):
                writer = RecordWriter(connection)
                for record in records:
                    try:
                        writer.write(record, record_digest(record))
                    except Unwritable as error:
                        raise StoreError(f"run {record.run_id} cannot be written", found=str(error)) from error
                remember_key(connection, self._wanted.key)
            self._files.rename(new, self._folder / "store.sqlite")
            self._files.fsync_folder(self._folder)

    def _paths(self) -> Iterator[Path]:
        """All files that may have to be changed; links are not followed."""
        for place, folders, names in os.walk(self._folder):
            folders.sort()
            for name in sorted(names):
                path = Path(place, name)
                is_own = path.parent == self._folder and (name in _OTHERS or name.startswith((_NEW, "store.sqlite-")))
                if not is_own and path.is_file() and not path.is_symlink():
                    yield path

    def _without(self, path: Path, found: _Found) -> Callable[[], None] | None:
        """How the file is replaced by one without the values; None where it holds none, or cannot be changed."""
        if path.name.startswith("store.sqlite"):
            found.unreached[str(path)] = _A_COPY
            return None
        if path.parent.parent == self._folder and path.parent.name in _DOCUMENTS and path.suffix == ".json":
            return self._without_in_document(path)
        told = str(path.relative_to(self._folder))
        if self._wanted.text(told) != told:
            found.unreached[str(path)] = _BY_NAME
        try:
            data = self._files.read(path)
        except FileNotFoundError:
            return None
        new = self._new_content(path, data, found)
        return None if new in {None, data} else lambda: self._replace(path, new or b"")

    def _replace(self, path: Path, data: bytes) -> None:
        self._files.write_whole(path, data, changed_ns=path.stat().st_mtime_ns)

    def _new_content(self, path: Path, data: bytes, found: _Found) -> bytes | None:
        wanted = self._wanted
        if path.name == RECORD_FILE or path.parent == self._folder / "inbox":
            try:
                record = open_envelope(data).record
            except ValueError:
                if data.startswith(b"\x1f\x8b"):
                    found.unreached[str(path)] = _CUT
                    return None
                return wanted.data(data)
            made = wanted.record(record)
            pieces = sealed_and_gzipped(made) if path.name == RECORD_FILE else sealed(made)[0]
            return data if made is record else b"".join(pieces)
        if path.name.startswith("events") and path.suffix == ".jsonl":
            return b"".join(map(self._frame, data.splitlines(keepends=True)))
        if path.suffix == ".json":
            with suppress(ValueError, RecursionError):
                node = json.loads(data)
                made_node = wanted.node(node)
                return data if made_node == node else json.dumps(made_node).encode()
        if b"\0" in data and path.name != "output.log":
            if wanted.data(data) != data:
                found.unreached[str(path)] = _NO_TEXT
            return None
        return wanted.data(data)

    def _frame(self, line: bytes) -> bytes:
        """A line of an event file, with its length and checksum; what is none is text."""
        found = _FRAME.fullmatch(line.removesuffix(b"\n"))
        if found is None:
            return self._wanted.data(line)
        try:
            event = json.loads(found[2])
        except (ValueError, RecursionError):
            return self._wanted.data(line)
        made = self._wanted.node(event)
        if made == event:
            return line
        body = found[1] + b" " + json.dumps(made, separators=(",", ":")).encode()
        return b"%d %08x %b\n" % (len(body), zlib.crc32(body), body)

    def _without_in_document(self, path: Path) -> Callable[[], None] | None:
        """A kept document has its digest, and a study the ids that its cells have; its name may hold a value, too."""
        documents = FolderDocuments(self._folder, path.parent.name, self._files)
        before = _document(documents, path.stem)
        made = self._wanted.node(before)
        name = re.sub(r"[^\w.~-]+", "_", self._wanted.text(path.stem))
        if made == before and name == path.stem:
            return None
        if path.parent.name == STUDIES:
            made = self._identified(before, {**made, **({"name": name} if "name" in made else {})})

        def put() -> None:
            documents.write(name, made, changed_ns=path.stat().st_mtime_ns)
            if name != path.stem:
                self._files.unlink(path)

        return put

    def _identified(self, before: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
        approaches = made.get("approaches", {})
        known = {new: old for new, (old, approach) in self._known.items() if approach in approaches}
        first, second = _study(before), _study(made)
        for name in first.searches if first and second else ():
            if first and second and name in second.searches:
                old, new = (search_id(study, study.searches[name]) for study in (first, second))
                known |= {new: old} if old != new else {}
        known = {**made.get("known_as", {}), **known}
        return {**made, **({"known_as": known} if known else {})}


def _content_id(cell: Cell) -> str:
    """The id that a cell of this content has, where nothing says that it is known as another."""
    return replace(cell, known_as="").id


def _document(documents: FolderDocuments, name: str) -> dict[str, Any]:
    return documents.read(name) or {}


def _study(document: dict[str, Any]) -> Study | None:
    try:
        rest = {name: value for name, value in document.items() if name != "folder"}
        return kept_study(rest, Path(document["folder"]), str(document["name"]))
    except (StudyError, KeyError, TypeError):
        return None
