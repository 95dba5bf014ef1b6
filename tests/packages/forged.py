"""Packages as an enemy would make them: zips with every field free, and contents that lie under a fitting manifest."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import struct
import zlib
from dataclasses import dataclass, field

from isorun.packages.canonical import jcs
from isorun.packages.reading import open_package
from isorun.packages.writing import PackageWriter
from isorun.study.design import Approach, Study, document_without_secrets
from isorun.testing.made_records import make_cell, make_record

MIB = 2**20


def honest(runs=3, points=40):
    """The members of a whole package, without manifest and signature."""
    file = io.BytesIO()
    writer = PackageWriter(file)
    study = Study(name="forged", approaches={"lenet": Approach("lenet", ("python", "train.py"))})
    writer.add_study(document_without_secrets(study))
    records = [make_record(make_cell(seed), points=points, watched=({"epoch": 1},)) for seed in range(1, runs + 1)]
    writer.add_records(sorted(records, key=lambda record: record.cell.id))
    manifest = writer.finish("forged")
    return {name: content for name, content in members_of(file.getvalue()) if name != "manifest.json"}, manifest


def members_of(data):
    """Names and contents, by the lengths in local headers: good enough for what we wrote ourselves."""
    place, found = 0, []
    while data[place : place + 4] == b"PK\3\4":
        size, name_size = struct.unpack_from("<I", data, place + 22)[0], struct.unpack_from("<H", data, place + 26)[0]
        name = data[place + 30 : place + 30 + name_size].decode()
        found.append((name, data[place + 30 + name_size : place + 30 + name_size + size]))
        place += 30 + name_size + size
    return found


@dataclass
class Member:
    """A member whose headers say what one likes. local, central: fields of one header that are overwritten."""

    name: bytes
    content: bytes
    both: dict = field(default_factory=dict)
    local: dict = field(default_factory=dict)
    central: dict = field(default_factory=dict)
    before: bytes = b""


def zipped(members, *, end=None, before_directory=b"", behind=b"", count=None):
    """A zip of these members. end: fields of the last record that are overwritten."""
    out, entries = bytearray(), []
    for member in members:
        out += member.before
        offset = len(out)
        crc, size = zlib.crc32(member.content), len(member.content)
        usual = {
            "version": 20, "flags": 0, "method": 0, "time": 0, "date": 0x21, "crc": crc, "packed": size, "size": size,
            "name": member.name, "extra": b"", "comment": b"", "disk": 0, "internal": 0, "external": 0o100644 << 16,
            "offset": offset, "made_by": 3 << 8 | 20,
        } | member.both  # fmt: skip
        said = usual | member.local
        out += struct.pack(
            "<4s5H3I2H", b"PK\3\4", said["version"], said["flags"], said["method"], said["time"], said["date"],
            said["crc"], said["packed"], said["size"], len(said["name"]), len(said["extra"]),
        ) + said["name"] + said["extra"] + member.content  # fmt: skip
        entries.append(usual | member.central)
    out += before_directory
    start = len(out)
    for said in entries:
        out += struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", said["made_by"], said["version"], said["flags"], said["method"], said["time"],
            said["date"], said["crc"], said["packed"], said["size"], len(said["name"]), len(said["extra"]),
            len(said["comment"]), said["disk"], said["internal"], said["external"], said["offset"],
        ) + said["name"] + said["extra"] + said["comment"]  # fmt: skip
    told = {"disk": 0, "of": 0, "here": len(entries), "count": len(entries), "size": len(out) - start, "offset": start,
            "comment": b""} | (end or {})  # fmt: skip
    if count is not None:
        told |= {"here": count, "count": count}
    tail = struct.pack("<4s4H2IH", b"PK\5\6", told["disk"], told["of"], told["here"], told["count"], told["size"],
                       told["offset"], len(told["comment"]))  # fmt: skip
    return bytes(out) + tail + told["comment"] + behind


def manifest_of(contents, **changes):
    """A manifest that fits these members, as JSON."""
    members = [
        {"name": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in contents.items()
    ]
    said = {"type": "isorun-package", "format": 1, "study": "forged", "runs": 3, "points": 249, "members": members}
    return {name: value for name, value in (said | changes).items() if value is not None}


def plain_members(contents, manifest=None, signature=None):
    """Members with a manifest that fits them, or with this one."""
    data = manifest if manifest is not None else jcs(manifest_of(contents))
    found = [Member(name.encode("utf-8", "surrogateescape"), content) for name, content in contents.items()]
    found.append(Member(b"manifest.json", data))
    return [*found, Member(b"signature.json", signature)] if signature is not None else found


def sealed(contents, **changes):
    """A package whose zip and manifest are in order, whatever its members say."""
    return zipped(plain_members(contents, jcs(manifest_of(contents, **changes))))


def with_lines(contents, name, change):
    """The members with the lines of one of them changed, each as parsed JSON."""
    lines = [json.loads(line) for line in bz2.decompress(contents[name]).splitlines()]
    changed = change(lines)
    text = b"".join(
        line if isinstance(line, bytes) else json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        for line in (lines if changed is None else changed)
    )
    return contents | {name: bz2.compress(text)}


def is_refused(path):
    """Whether `verify` refuses the file with its own error."""
    with open_package(path) as package:
        package.check_all()
        return not list(package.records())
