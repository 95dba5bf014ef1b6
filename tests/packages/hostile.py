"""At least 150 packages that were made to do harm, each with what it tries."""

from __future__ import annotations

import base64
import bz2
import copy
import functools
import io
import json
import random
import struct
import tarfile
import zipfile
import zlib

from forged import MIB, Member, honest, manifest_of, plain_members, sealed, with_lines, zipped

from isorun.packages.canonical import bytes_in_order, jcs

RUNS, NUMBERS, SHARED = "runs/00000.jsonl.bz2", "runs/00000.numbers", "shared.jsonl.bz2"
NAMES = [
    "../evil", "../../etc/passwd", "/etc/passwd", "a/../../evil", "..", ".", "./study", "a/./b", "a//b", "a/", "/",
    "", " ", "a b", "study.json ", "study.json.", "~/x", "-rf", "C:/x", "C:\\x", "a\\b", "..\\evil", "\\\\host\\share",
    "con", "nul", "aux.txt", "com1", "lpt9.json", "code/con", "STUDY.JSON", "Study.json", "Code/x", "a\0b", "a\nb",
    "a\tb", "a\x1b[2Jb", "a\x7fb", "stu\u0301dy", "ſtudy.json", "study\u202egnp.json", "a\u200bb", "％2e％2e",
    "a" * 101,
    "x/" * 49 + "x/x", "a:b", "a*b", "a?b", "a|b", "a<b", "$HOME", "`id`", "$(id)", "%2e%2e%2fevil", "file://x",
    ".hidden", "a/.hidden",
]  # fmt: skip
FIELDS = {
    "attempt": ["1", 0, -1, 1.0, True, None, 2**63],
    "state": ["ended", 1, None, []],
    "exit_code": ["0", 0.5, [], {}],
    "signal": [9, ["x"]],
    "seed_used": ["1", 1.5],
    "started_at": [7],
    "wall_seconds": ["3", [], True],
    "peak_memory_bytes": ["1", 1.5],
    "results": [[], "x", {"a": "much"}, {"a": []}, {"a": None}],
    "per_class": [[], {"a": []}, {"a": {"b": "c"}}],
    "digests": [[], {"a": 1}],
    "devices": [[1]],
    "where": [{"host": 1}],
    "notes": [[["a"]], [[1, 2]], ["ab"], [["a", "b", "c"]]],
    "seeded": [[[1, 2, 3]], [["a"]]],
    "log_tail": [99999, -1, True, 0, ["x"]],
    "environment": [99999, -1, "0", None, {}, True],
    "code": [99999, "x", 1.0],
    "sources": [99999, []],
    "cell": [[], ["x", 0, 1, 0], "x", ["0" * 16, 0, 1, 0], ["0" * 16, 99, 1, 0], {"id": 1}, [None, 0, "1", "0"]],
    "axes": [[[-1, [0.0, 1.0], None]], [["3", None, None]], [[10**15, [0.0, 1.0], [-10, 5]]], [[3]], "x",
             [[3, [1], None]], [[40, [0.0, 1.0], [10**6, 5]], [3, [0.0, 1.0], [-10, 2**60]]]],
    "series": [{"loss": [9, 0]}, {"loss": [0, 7]}, {"loss": [0, -1]}, {"loss": [0]}, {"loss": 1}, ["loss"],
               {"loss": [True, 0]}],
    "unknown_field_of_a_run": [1],
}  # fmt: skip


@functools.cache
def _zeros():
    """A stream of 20 MiB of zeros."""
    return bz2.compress(bytes(20 * MIB))


def hostile():
    """Names and contents of all hostile packages."""
    contents, _ = honest()
    yield from _not_zips(contents)
    yield from _names(contents)
    yield from _headers(contents)
    yield from _ends(contents)
    yield from _manifests(contents)
    yield from _lies(contents)
    yield from _jsons(contents)
    yield from _runs(contents)
    yield from _paths(contents)
    yield from _numbers(contents)
    yield from _bombs(contents)
    yield from _signatures(contents)
    yield from _many(contents)


def _not_zips(contents):
    whole = sealed(contents)
    yield "empty file", b""
    yield "a byte", b"P"
    yield "text", b"hello\n" * 100
    yield "zeros", bytes(100_000)
    yield "gzip", zlib.compress(b"x" * 1000, wbits=31)
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../evil"))
    yield "tar", file.getvalue()
    yield "an end alone", zipped([])
    yield "only a manifest", zipped([Member(b"manifest.json", jcs(manifest_of({})))])
    yield "no manifest", zipped([Member(name.encode(), data) for name, data in contents.items()])
    for share in (1, 3, 10, 30, 50, 70, 90, 99):
        yield f"cut to {share} %", whole[: len(whole) * share // 100]
    yield "one byte short", whole[:-1]
    yield "first byte gone", whole[1:]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as other:
        for name, data in contents.items():
            other.writestr(name, data)
        other.writestr("manifest.json", jcs(manifest_of(contents)))
    yield "packed by zipfile", file.getvalue()


def _names(contents):
    for name in NAMES:
        data = name.encode("utf-8", "surrogateescape")
        honest_list = (
            jcs(manifest_of(contents | {name: b"x"})) if not any("\ud800" <= c <= "\udfff" for c in name) else b"{}"
        )
        members = [*plain_members(contents)[:-1], Member(data, b"x"), Member(b"manifest.json", honest_list)]
        yield f"member {name!r}", zipped(members)
    yield (
        "member of bytes that are no text",
        zipped([*plain_members(contents)[:-1], Member(b"\xff\xfe", b"x"), plain_members(contents)[-1]]),
    )
    first = plain_members(contents)
    yield "a member twice", zipped([first[0], *first])
    yield "a member twice, with other content", zipped([*first[:-1], Member(first[0].name, b"{}"), first[-1]])
    yield "the manifest twice", zipped([*first, first[-1]])
    twin = contents | {"STUDY.json": contents["study.json"]}
    yield "case twins", zipped(plain_members(twin))


def _headers(contents):
    def tweaked(which, at=0, **fields):
        members = plain_members(contents)
        getattr(members[at], which).update(fields)
        return zipped(members)

    for at in (0, -1):
        for which in ("both", "local", "central"):
            where = f"{which} header of member {at}"
            yield f"encrypted, {where}", tweaked(which, at, flags=1)
            yield f"strongly encrypted, {where}", tweaked(which, at, flags=0x41)
            yield f"sizes behind the data, {where}", tweaked(which, at, flags=8)
            yield f"UTF-8 flag, {where}", tweaked(which, at, flags=0x800)
            yield f"deflate, {where}", tweaked(which, at, method=8)
            yield f"unknown method, {where}", tweaked(which, at, method=99)
            yield f"zip64 extra, {where}", tweaked(which, at, extra=struct.pack("<HHQQ", 1, 16, 5, 5))
            yield f"sizes of zip64, {where}", tweaked(which, at, size=0xFFFFFFFF, packed=0xFFFFFFFF)
            yield f"size 0, {where}", tweaked(which, at, size=0, packed=0)
            yield f"size + 1, {where}", tweaked(which, at, size=len(contents["study.json"]) + 1)
            yield f"another CRC, {where}", tweaked(which, at, crc=0xDEADBEEF)
            yield f"a time, {where}", tweaked(which, at, time=0x7BCF)
            yield (
                f"Unicode path extra, {where}",
                tweaked(which, at, extra=struct.pack("<HHBI", 0x7075, 9, 1, 0) + b"evil"),
            )
        yield f"a comment, member {at}", tweaked("central", at, comment=b"hello")
        yield f"a link, member {at}", tweaked("central", at, external=0o120777 << 16)
        yield f"a folder, member {at}", tweaked("central", at, external=0o040755 << 16 | 0x10)
        yield f"a device, member {at}", tweaked("central", at, external=0o020666 << 16)
        yield f"setuid, member {at}", tweaked("central", at, external=0o104755 << 16)
        yield f"another disk, member {at}", tweaked("central", at, disk=1)
        yield f"made by Windows, member {at}", tweaked("central", at, made_by=20)
        yield f"another name in the local header, member {at}", tweaked("local", at, name=b"../../evil")
        yield f"an offset beyond the file, member {at}", tweaked("central", at, offset=0xFFFFFFF0)
    yield "members that overlap", tweaked("central", 1, offset=0)
    yield "a quoted header inside a member", tweaked("central", 1, offset=31)
    members = plain_members(contents)
    members[1].before = b"hidden"
    yield "bytes between members", zipped(members)
    many = [Member(b"study.json", b"", central={"offset": 0}) for _ in range(2000)]
    yield "2,000 entries of one member", zipped([plain_members(contents)[0], *many])


def _ends(contents):
    members, whole = plain_members(contents), sealed(contents)
    count, start = len(members), whole.rfind(b"PK\5\6")
    yield "a comment at the end", zipped(members, end={"comment": b"hello"})
    yield "a comment that is a second end", zipped(members, end={"comment": whole[start:]})
    yield "bytes behind the end", zipped(members, behind=b"x")
    yield "a zip behind the end", whole + whole
    yield "a program before the zip", b"#!/bin/sh\nid\n" + whole
    yield "bytes before the directory", zipped(members, before_directory=b"hidden")
    for wrong in (0, 1, count - 1, count + 1, 0xFFFF):
        yield f"says {wrong} members", zipped(members, count=wrong)
    yield "counts that differ", zipped(members, end={"here": count - 1})
    yield "a disk of several", zipped(members, end={"disk": 1, "of": 1})
    for key in ("size", "offset"):
        for wrong in (0, 1, 0xFFFFFFFF):
            yield f"directory with {key} {wrong}", zipped(members, end={key: wrong})
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start, 1)
    record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, 100, 100)
    yield "zip64 end", whole[:start] + record + locator + whole[start:]
    yield (
        "zip64 end with a million members",
        whole[:start] + record.replace(struct.pack("<Q", count), struct.pack("<Q", 10**6)) + locator + whole[start:],
    )
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 3 << 8 | 20, 20, 0, 0, 0, 0x21, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    data = entry * 10**6
    yield "10^6 members", data + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(data), 0, 0)
    data = entry * 60_000
    yield "60,000 members", data + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 60_000, 60_000, len(data), 0, 0)
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0x21, 0, 0, 0, 5, 0)
    names = [f"{number:05}".encode() for number in range(20_000)]
    body = b"".join(local + name for name in names)
    listed = b"".join(
        struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 3 << 8 | 20, 20, 0, 0, 0, 0x21, 0, 0, 0, 5, 0, 0, 0, 0, 0o100644 << 16, 35 * place
        )
        + name
        for place, name in enumerate(names)
    )
    yield (
        "20,000 empty members",
        body + listed + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 20_000, 20_000, len(listed), len(body), 0),
    )


def _manifests(contents):
    good = manifest_of(contents)
    text = jcs(good)

    def with_text(data):
        return zipped(plain_members(contents, data))

    yield "manifest with spaces", with_text(json.dumps(good, sort_keys=True).encode())
    yield (
        "manifest in another order",
        with_text(json.dumps(dict(sorted(good.items(), reverse=True)), separators=(",", ":")).encode()),
    )
    yield "manifest with a line end", with_text(text + b"\n")
    yield "manifest with a byte order mark", with_text(b"\xef\xbb\xbf" + text)
    yield "manifest in UTF-16", with_text(text.decode().encode("utf-16"))
    yield "manifest that is no UTF-8", with_text(text[:-1] + b"\xff}")
    yield "manifest with a key twice", with_text(b'{"format":1,' + text[1:])
    yield "manifest with a hidden key", with_text(text[:-1] + b',"type":"isorun-package"}')
    yield "manifest with escapes that need none", with_text(text.replace(b'"forged"', b'"\\u0066orged"'))
    for word in (
        b"1.0",
        b"1e0",
        b"01",
        b"+1",
        b"NaN",
        b"Infinity",
        b"1e400",
        b"-0",
        b"true",
        b'"1"',
        b"9" * 5000,
        b"2",
    ):
        yield f"format {word[:10]!r}", with_text(text.replace(b'"format":1', b'"format":' + word))
    for data in (
        b"",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"{}",
        b"{",
        b"[" * 100_000,
        b"{" + b'"a":{' * 50_000,
        b"[" * 50 + b"]" * 50,
    ):
        yield f"manifest {data[:12]!r}", with_text(data)
    yield "manifest of many values", with_text(b"[" + b"[]," * 2_000_000 + b"[]]")
    yield "manifest of 20 MB", with_text(b'"' + b"x" * 20 * MIB + b'"')
    for change in (
        {"type": "other"}, {"type": None}, {"format": 2}, {"format": None}, {"study": 5}, {"study": None}, {"runs": -1},
        {"runs": 2}, {"runs": 10**15}, {"points": 0}, {"points": 1.5}, {"members": {}}, {"members": [1]}, {"more": 1},
        {"runs": True}, {"members": []}, {"study": "another"},
    ):  # fmt: skip
        yield f"manifest says {change}", with_text(jcs(manifest_of(contents, **change)))


def _lies(contents):
    def with_members(change):
        said = manifest_of(contents)
        change(said["members"])
        return zipped(plain_members(contents, jcs(said)))

    yield "another hash", with_members(lambda all_: all_[0].update(sha256="0" * 64))
    yield "a hash in capitals", with_members(lambda all_: all_[0].update(sha256=all_[0]["sha256"].upper()))
    yield "a short hash", with_members(lambda all_: all_[0].update(sha256="abc"))
    yield "no hash", with_members(lambda all_: all_[0].pop("sha256"))
    yield "another size", with_members(lambda all_: all_[0].update(size=1))
    yield "a negative size", with_members(lambda all_: all_[0].update(size=-1))
    yield "a member that is not there", with_members(lambda all_: all_.append(all_[0] | {"name": "more"}))
    yield "a member unnamed", with_members(lambda all_: all_.pop(1))
    yield "a member named twice", with_members(lambda all_: all_.append(all_[0]))
    yield "another order", with_members(lambda all_: all_.reverse())
    yield "the manifest in itself", with_members(lambda all_: all_.append(all_[0] | {"name": "manifest.json"}))
    yield "a member with more keys", with_members(lambda all_: all_[0].update(link="/etc/passwd"))
    members = plain_members(contents)
    yield "the manifest first", zipped([members[-1], *members[:-1]])
    for name in contents:
        missing = {key: value for key, value in contents.items() if key != name}
        yield f"without {name}", sealed(missing)
        yield f"{name} empty", sealed(contents | {name: b""})
        yield f"{name} of other bytes", sealed(contents | {name: b"x" * 50})
    swapped = contents | {RUNS: contents[SHARED], SHARED: contents[RUNS]}
    yield "members swapped", sealed(swapped)
    yield (
        "a second block that repeats the first",
        sealed(contents | {"runs/00001.jsonl.bz2": contents[RUNS], "runs/00001.numbers": contents[NUMBERS]}),
    )
    yield (
        "a block with a gap before it",
        sealed(contents | {"runs/00007.jsonl.bz2": contents[RUNS], "runs/00007.numbers": contents[NUMBERS]}),
    )


def _jsons(contents):
    for data in (
        b"null", b"[]", b"{}", b'{"name":"forged"}', b'{"name":"other"}', b'{"name":"forged","approaches":5}',
        b"[" * 10_000,
        b'{"a":1,"a":1,"name":"forged"}', b'{"name":"forged" }', b'{"name":"forged","repeats":' + b"9" * 4000 + b"}",
        contents["study.json"].replace(b'"repeats":1', b'"repeats":1000000000'),
        contents["study.json"].replace(b'"seeds":[1]', b'"seeds":"all"'),
        contents["study.json"].replace(b'"train.py"', b'{"x":1}'),
        contents["study.json"].replace(b'"levels":["', b'"levels":["../'),
        contents["study.json"] + b"\n",
    ):  # fmt: skip
        yield f"study {data[:40]!r}", sealed(contents | {"study.json": data})
    for line in (
        b"",
        b"{",
        b"nul",
        b"[" * 70 + b"]" * 70,
        b'{"a":1,"a":2}',
        b"1e999",
        b"1.50",
        b" 1",
        b"-0.0e0",
        b"\xff",
        b'"\\x"',
    ):
        text = bz2.decompress(contents[SHARED]) + line + b"\n"
        yield f"shared line {line[:20]!r}", sealed(contents | {SHARED: bz2.compress(text)})
    for lines in (b"[1\n2]\n3,4", b'{"a":[{"b":1}\n{"c":1}]}\n{},{}', b'"\n"\n1,1', b"[\n]\n1,1\n1,1"):
        text = bz2.decompress(contents[SHARED]) + lines + b"\n"
        yield f"shared lines that are whole only together {lines!r}", sealed(contents | {SHARED: bz2.compress(text)})
    yield (
        "a last line without an end",
        sealed(contents | {SHARED: bz2.compress(bz2.decompress(contents[SHARED]) + b"1")}),
    )
    yield "two streams in a member", sealed(contents | {SHARED: contents[SHARED] + bz2.compress(b"1\n")})
    yield "bytes behind a stream", sealed(contents | {SHARED: contents[SHARED] + b"x"})
    yield "a stream cut short", sealed(contents | {SHARED: contents[SHARED][:-5]})
    yield "a stream that is gzip", sealed(contents | {SHARED: zlib.compress(b"1\n", wbits=31)})


def _runs(contents):
    def changed(change):
        return sealed(with_lines(contents, RUNS, change))

    def with_field(name, value):
        def change(lines):
            lines[1][name] = value

        return changed(change)

    for name, values in FIELDS.items():
        for value in values:
            yield f"a run with {name} {json.dumps(value)[:40]}", with_field(name, value)
    for name in ("cell", "attempt", "state", "wall_seconds", "cpu_seconds", "peak_memory_bytes"):
        yield (
            f"a run without {name}",
            changed(
                lambda lines, name=name: [
                    lines[0],
                    {key: value for key, value in lines[1].items() if key != name},
                    *lines[2:],
                ]
            ),
        )
    yield (
        "runs in another order",
        changed(lambda lines: [lines[0], *lines[7:], *lines[1:7]] if "cell" in lines[7] else lines[::-1]),
    )
    yield "a run twice", changed(lambda lines: [{"record": 2, "runs": 4}, *lines[1:], copy.deepcopy(lines[1])])
    yield "a record of the future", changed(lambda lines: [{"record": 99, "runs": 3}, *lines[1:]])
    yield "a record of version 0", changed(lambda lines: [{"record": 0, "runs": 3}, *lines[1:]])
    yield "more runs than are there", changed(lambda lines: [{"record": 2, "runs": 4}, *lines[1:]])
    yield "10^9 runs said", changed(lambda lines: [{"record": 2, "runs": 10**9}, *lines[1:]])
    yield "a first line with more", changed(lambda lines: [{"record": 2, "runs": 3, "x": 1}, *lines[1:]])
    yield "no first line", changed(lambda lines: lines[1:])
    yield "nothing but a first line", changed(lambda lines: lines[:1])
    yield "a piece of a prediction of no run", changed(lambda lines: [lines[0], {"data": "x"}, *lines[1:]])
    yield "a row of no run", changed(lambda lines: [lines[0], {"watched": {}}, *lines[1:]])
    yield "a line of another kind", changed(lambda lines: [*lines, {"other": 1}])
    yield "a line that is a list", changed(lambda lines: [*lines, ["cell"]])
    yield "a line that is a text", changed(lambda lines: [*lines, "cell"])
    yield "a watched row that is a list", changed(lambda lines: [*lines, {"watched": [1]}])

    def other_cell(change):
        def changed_lines(lines):
            for line in lines:
                if isinstance(line, dict) and "approach" in line:
                    change(line)

        return sealed(with_lines(contents, SHARED, changed_lines))

    yield "a cell of other content than its id", other_cell(lambda cell: cell.update(approach="evil"))
    yield "a command that is a text", other_cell(lambda cell: cell.update(command="rm -rf /"))
    yield "a level that is none", other_cell(lambda cell: cell.update(level="../x"))
    yield "a known name for all cells", other_cell(lambda cell: cell.update(known_as="0" * 16))


def _paths(contents):
    """Names that become paths where a store is made of the package, or what it says is run again."""
    for path in ("/tmp/evil", "../../evil", "a/../../evil", "..", ".", "a", "0" * 17, "0" * 15 + "G", "\0" * 16):

        def known(lines, path=path):
            for line in lines:
                if "approach" in line:
                    line["known_as"] = path

        def called(lines, path=path):
            run = next(line for line in lines if "cell" in line)
            run["cell"][0] = path
            return [{"record": lines[0]["record"], "runs": 1}, run, {"watched": {"epoch": 1}}]

        one, _ = honest(runs=1)
        changed = with_lines(with_lines(one, SHARED, known), RUNS, called)
        yield f"a cell that is known as {path!r}", sealed(changed, runs=1, points=83)
        study = json.loads(contents["study.json"])
        for what, said in (("study", {"known_as": {"0" * 16: path}}), ("imported run", {"imported": _imported(path)})):
            changed = contents | {"study.json": bytes_in_order({**study, **said})}
            yield f"a cell of the {what} known as {path!r}", sealed(changed)
        if path not in {"a", "0" * 17, "0" * 15 + "G"}:
            for kind in ("plans", "searches"):
                yield f"one of the {kind} called {path!r}", _with_document(contents, kind, path)
    for kind in ("studies", "replays", "", "../plans", "other"):
        yield f"a document of the kind {kind!r}", _with_document(contents, kind, "fine")


def _imported(cell):
    run = {"run": ["1"], "cell": cell, "content": "", "approach": "lenet", "config": "default", "level": "default"}
    return {"tracker": "t", "runs": [{**run, "seed": None, "repeat": 0}]}


def _with_document(contents, kind, name):
    line = bytes_in_order({"kind": kind, "name": name, "document": {}}) + b"\n"
    return sealed(contents | {"documents.jsonl.bz2": bz2.compress(line)})


def _numbers(contents):
    data = contents[NUMBERS]

    def with_numbers(changed):
        return sealed(contents | {NUMBERS: changed})

    yield "numbers cut short", with_numbers(data[:-1])
    yield "more numbers", with_numbers(data + b"\0")
    yield "no numbers", with_numbers(b"")
    yield "an unknown kind of chunk", with_numbers(b"\2" + data[1:])
    yield "an unknown kind of plane", with_numbers(data[:1] + b"\7" + data[2:])
    yield "more different numbers than there are", with_numbers(b"\1\xff\xff\xff\xff" + data[5:])
    yield "no different numbers", with_numbers(b"\1\0\0\0\0" + data[5:])
    yield "a compressed plane of 4 GiB", with_numbers(b"\0\2\xff\xff\xff\xff" + data)
    bomb = _zeros()
    yield "a plane that is a bomb", with_numbers(b"\0\2" + struct.pack("<I", len(bomb)) + bomb + data)


def _bombs(contents):
    bomb = _zeros()
    for name in (RUNS, SHARED):
        yield f"zeros without end in {name}", sealed(contents | {name: bomb})
    yield "a bomb in bombs", sealed(contents | {SHARED: bz2.compress(bomb * 100)})
    yield "3 million empty lines", sealed(contents | {SHARED: bz2.compress(b"\n" * 3_000_000)})
    yield "a line of 9 MiB", sealed(contents | {SHARED: bz2.compress(b'"' + b"x" * 9 * MIB + b'"\n')})
    yield "a line of a million lists", sealed(contents | {SHARED: bz2.compress(b"[" + b"[]," * 10**6 + b"[]]\n")})
    yield "a line that is 5,000 deep", sealed(contents | {SHARED: bz2.compress(b"[" * 5000 + b"]" * 5000 + b"\n")})
    yield "a number of a million digits", sealed(contents | {SHARED: bz2.compress(b"1" * 10**6 + b"\n")})

    def huge(lines):
        lines[1]["axes"] = [[10**10, [0.0, 1.0], None]]
        lines[1]["series"] = {"loss": [0, 0]}

    chunks = (b"\0" + b"\0\0" * 8) * 50_000
    yield "10^10 points of one byte", sealed(with_lines(contents, RUNS, huge) | {NUMBERS: chunks})

    def ranges(lines):
        lines[1]["axes"] = [[10**9, [0.0, 1.0], [-10, 5]]]
        lines[1]["series"] = {}

    yield "10^9 steps of a range, of no series", sealed(with_lines(contents, RUNS, ranges))

    def many_axes(lines):
        lines[1]["axes"] = [[0, [float(number), 1.0], None] for number in range(90_000)]

    def axes_of(axes):
        def changed(lines):
            lines[1]["axes"], lines[1]["series"] = axes, {}

        return with_lines(contents, RUNS, changed)

    gaps = b"\0\0\0\0\0"
    many = [[130_000, [float(number), 1.0], [-10, 5]] for number in range(200)]
    one = [[30_000_000, [0.0, 1.0], [-10, 5]]]
    yield "30 million seconds of equal gaps, of no series", sealed(axes_of(one) | {NUMBERS: gaps * 115})
    yield "200 ranges of 130,000 steps", sealed(axes_of(many) | {NUMBERS: gaps * 100})
    few = axes_of([[1_000_000, None, [-10, 5]]])
    yield "a million steps of 17 bytes a chunk", sealed(few | {NUMBERS: (b"\0" + b"\0\0" * 8) * 4 + gaps * 4})
    shared = bz2.decompress(contents[SHARED])
    for what, line, count in (
        ("lists", b"[" + b"[]," * 90_000 + b"[]]\n", 200),
        ("dicts", b"[" + b'{"a":0},' * 50_000 + b"0]\n", 130),
        ("numbers", b"[" + b"0.5," * 280_000 + b"0]\n", 50),
        ("nests", b"[" * 12 + b"]" * 12 + b"\n", 2_000_000),
        ("long texts", b'"' + b"x" * 7_000_000 + b'"\n', 9),
        ("long texts with one wide letter", b'"' + b"x" * 7_000_000 + rb"\ud83d\ude00" + b'"\n', 9),
    ):
        yield f"{what} by the million in short lines", sealed(contents | {SHARED: bz2.compress(shared + line * count)})
    rows = bz2.decompress(contents[RUNS]) + b'{"watched":{"a":{"b":{"c":{}}}}}\n' * 1_500_000
    yield "watched rows by the million", sealed(contents | {RUNS: bz2.compress(rows)})
    yield "90,000 axes of nothing, and a lie", sealed(with_lines(contents, RUNS, many_axes), points=7)
    yield from _small_texts_that_are_large_in_memory(contents)
    yield from _long_axes(contents)
    yield from _large_predictions(contents)


def _small_texts_that_are_large_in_memory(contents):
    shared = bz2.decompress(contents[SHARED])
    lines = {
        "numbers": b"[" + b",".join([b"0.5"] * 20_000) + b"]\n",
        "empty objects": b"[" + b",".join([b"{}"] * 25) + b"]\n",
        "lines of nothing": b"{}\n",
        "a text of which a character is wide": b'"' + b"x" * 7 * MIB + b'\\ud83d\\ude00"\n',
    }
    for name, line in lines.items():
        data = bz2.compress(shared + line * (8 * MIB // len(line)))
        yield f"8 MiB of {name}, in little room", sealed(contents | {SHARED: data})
    row = {"watched": {str(number): 0.5 for number in range(100)}}
    yield "8,000 watched rows, all the same", sealed(with_lines(contents, RUNS, lambda lines: [*lines, *[row] * 8_000]))


def _long_axes(contents):
    """Axes of millions of equal gaps, which take a few bytes, and as seconds of float64 a hundred megabytes."""

    alone = honest(runs=1)[0]

    def packed_axis(points, used, noise=0):
        def long(lines):
            run = next(line for line in lines if "cell" in line)
            run["axes"], run["series"] = [[points, [0.0, 1.0], [-10, 5]]], {"a": [0, 0]} if used else {}

        numbers = _few_bytes(points - 1, 2, noise) + (_few_bytes(points, 8, noise) if used else b"")
        changed = with_lines(alone, RUNS, long) | {NUMBERS: numbers}
        return sealed(changed, runs=1, points=points if used else 0)

    def each_long(lines):
        for run in (line for line in lines if "cell" in line):
            run["axes"], run["series"] = [[2**20, [0.0, 1.0], [-10, 5]]], {"a": [0, 0]}

    yield "30 million equal gaps, of no series", packed_axis(30_000_000, used=False)
    yield "500,000 equal gaps and values, in 61 bytes", packed_axis(500_000, used=True)
    yield "6 million equal gaps and values", packed_axis(6_000_000, used=True)
    yield "6 million gaps and values as small as they may be", packed_axis(6_000_000, used=True, noise=800)
    numbers = _few_bytes(3 * (2**20 - 1), 2, 800) + _few_bytes(2**20, 8, 3_000)
    block = with_lines(contents, RUNS, each_long) | {NUMBERS: numbers}
    yield "runs of a million points in one block", sealed(block, points=3 * 2**20)


def _few_bytes(count, width, noise):
    """A column whose numbers are all the same, but for so many a chunk where there is noise."""
    chunks = []
    for start in range(0, count, 2**18):
        plane = bytearray(min(2**18, count - start))
        places = random.Random(start).sample(range(len(plane)), min(noise, len(plane)))
        for place in places:
            plane[place] = place % 251
        stream = bz2.compress(bytes(plane))
        first = b"\2" + struct.pack("<I", len(stream)) + stream if noise else b"\0\1"
        chunks.append(b"\0" + first + b"\0\0" * (width - 1))
    return b"".join(chunks)


def _large_predictions(contents):
    """What is unpacked when somebody asks for it: a report, a page."""
    data = base64.b64encode(zlib.compress(bytes(20 * MIB))).decode()

    def with_predictions(count, **fields):
        item = {"name": "test", "step": None, "kind": "class", "dtype": "uint8", "shape": [20 * MIB], **fields}

        def more(lines):
            first = next(place for place, line in enumerate(lines) if "cell" in line)
            told = [{"prediction": {**item, "name": f"test{number}"}, "data": data} for number in range(count)]
            return [*lines[: first + 1], *told, *lines[first + 1 :]]

        return sealed(with_lines(contents, RUNS, more))

    yield "100 predictions of 20 MiB in a few bytes", with_predictions(100)
    yield "a prediction of 10^12 examples", with_predictions(1, shape=[10**6, 10**6])
    yield "a prediction of fewer than no examples", with_predictions(1, shape=[-5])
    for dtype in ("O", "V100000", "<U9999999", "i4,i4", "u1", 5, None, ["uint8"]):
        yield f"a prediction of {dtype!r}", with_predictions(1, dtype=dtype, shape=[4])


def _signatures(contents):
    good = {"format": 1, "algorithm": "ed25519", "key": "A" * 43 + "=", "signature": "A" * 86 + "=="}

    def signed(data, first=False):
        members = plain_members(contents, signature=data)
        return zipped([*members[:-2], members[-1], members[-2]] if first else members)

    yield "a signature that is no JSON", signed(b"signed!")
    yield "a signature of a text", signed(b'"x"')
    yield "a signature with spaces", signed(json.dumps(good, sort_keys=True).encode())
    yield "a signature before the manifest", signed(jcs(good), first=True)
    for change in (
        {"format": 2}, {"algorithm": "rsa"}, {"key": ""}, {"key": "A" * 44}, {"key": 5}, {"signature": "!"},
        {"more": 1},
        {"signature": "A" * 85 + "B=="}, {"key": " " + "A" * 43 + "="}, {"signature": None},
    ):  # fmt: skip
        yield f"a signature with {change}", signed(jcs(good | change))
    yield (
        "two signatures",
        zipped([*plain_members(contents, signature=jcs(good)), Member(b"signature.json", jcs(good))]),
    )
    yield "a signature in the manifest", sealed(contents | {"signature.json": jcs(good)})


def _many(contents):
    """Small in bytes, and much work for whoever looks at all pairs. The manifest lies, which is seen at the end."""

    def with_study(**fields):
        study = json.loads(contents["study.json"]) | fields
        return sealed(contents | {"study.json": bytes_in_order(study)}, points=1)

    yield "19,990 empty members", sealed(contents | {f"x{number}": b"" for number in range(19_990)}, points=1)
    configs = {f"c{number}": {} for number in range(30_000)}
    yield "30,000 configs", with_study(configs=configs)
    approaches = {f"a{number}": {"command": ["x"]} for number in range(6_000)}
    yield "6,000 approaches that take 30,000 configs", with_study(configs=configs, approaches=approaches)
    yield "30,000 ways to ask for runs", with_study(asked=[{"levels": ["default"]}] * 30_000)
    yield "many times a million seeds", with_study(asked=[{"seeds": 10**6, "repeats": 10**6}] * 1_000)
