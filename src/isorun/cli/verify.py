"""Is a package whole, what is in it, and who signed it?

isorun verify resnet56.isorun
isorun verify resnet56.isorun --key lab.pub    only if the owner of this key signed it
isorun verify registry:lab/cifar10/resnet56@3  one of a registry

Every byte is checked, nothing of it is executed, and all runs are read. Exit code 0: whole, and not signed by a key
that is wrong; 3: damaged, or the signature does not fit. A key is trusted when you said so: isorun keys trust.
"""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import PackageError, harmless

if TYPE_CHECKING:
    from isorun.share.looking import LookedAt

__all__ = ["declare", "execute"]

_SHOWN = 3


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("package", metavar="PACKAGE", help="a file that isorun pack made, or registry:NAME")
    parser.add_argument("--key", metavar="KEY|FILE", help="it has to be signed with this key (a line, or a file)")
    parser.add_argument("--address", metavar="ADDRESS", help="it has to be the package with this address")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Check the package and say what is in it."""
    from isorun.share import looking
    from isorun.share.keys import public_key

    keys = [public_key(options.key)] if options.key else None
    try:
        found = replace(looking.verify(_file_of(options.package), keys=keys, apart=True), path=options.package)
    except PackageError as error:
        return _tell_damage(options, error)
    wrong = _wrong(options, found)
    if options.json:
        cli.print_json({**found.to_json(), "wrong": wrong or None})
    else:
        cli.show_text("".join(f"{harmless(line)}\n" for line in _told(found, wrong)))
    return 3 if wrong else 0


def _file_of(package: str) -> str:
    """The file; one that a registry has is fetched."""
    from isorun.packages.names import PREFIX

    if not package.startswith(PREFIX):
        return package
    from isorun.registries import fetched

    return str(fetched(package))


def _tell_damage(options: argparse.Namespace, error: PackageError) -> int:
    if options.json:
        cli.print_json({"package": options.package, "whole": False, "what": error.what, "found": error.found})
        return 3
    lines = [f"{options.package} is not whole: {error.what}"]
    lines += [f"  found:   {error.found}"] if error.found else []
    lines += [f"  allowed: {error.allowed}", f"  next:    {error.hint}"]
    cli.show_text("".join(f"{harmless(line)}\n" for line in lines))
    return 3


def _wrong(options: argparse.Namespace, found: LookedAt) -> str:
    """What is wrong with a package that is whole; empty where nothing is."""
    from isorun.share.looking import INVALID, NONE, UNKNOWN_KEY

    if options.address and options.address.removeprefix("sha256:") != found.address.removeprefix("sha256:"):
        return "it has another address than the one asked for"
    if found.signature == INVALID:
        return "its signature does not fit: it was signed for another content, or altered"
    if options.key and found.signature == NONE:
        return "it is not signed"
    if options.key and found.signature == UNKNOWN_KEY:
        return "it is signed by another key than the one asked for"
    return ""


def _told(found: LookedAt, wrong: str) -> list[str]:
    from isorun.analysis.evidence import some

    states = ", ".join(f"{count:,} {state}" for state, count in found.states.items())
    files = len(found.data.get("files") or ())
    versions = found.code.get("versions")
    commits = [str(item.get("commit", ""))[:12] for item in versions or () if isinstance(item, dict)]
    runs = some(found.manifest.runs, "run")
    data = f"digests of {some(files, 'file')}" if files else "no digest of a file"
    lines = [
        f"{found.path} is whole, but {wrong}" if wrong else f"{found.path} is whole: every byte of it is accounted for",
        f"  study        {found.manifest.study}: {runs} ({states}) in {some(found.groups, 'group')}",
        f"  metrics      {', '.join(found.metrics[:6]) or 'none'}{' …' if len(found.metrics) > 6 else ''}",
        f"  series       {some(found.manifest.points, 'point')}",
        f"  code         {', '.join(filter(None, commits[:3])) or 'no commit'}",
        f"  data         {data}",
        f"  size         {found.size:,} bytes in {len(found.manifest.members):,} members",
        f"  address      {found.address}",
        f"  signature    {_signature(found)}",
    ]
    for number, sentence in enumerate(found.environments[:_SHOWN]):
        lines.append(f"  {'environments' if not number else '            '} {sentence}")
    if len(found.environments) > _SHOWN:
        lines.append(f"               and {len(found.environments) - _SHOWN:,} more (all of them with --json)")
    return [*lines, *_next(found)]


def _signature(found: LookedAt) -> str:
    from isorun.share.looking import INVALID, NONE, TRUSTED

    if found.by is None or found.signature == NONE:
        return "none: whoever gave you this file may have made it"
    if found.signature == INVALID:
        return f"INVALID, with the key {found.by.fingerprint}"
    if found.signature == TRUSTED:
        return f"valid, by {found.by.name or 'the key asked for'} ({found.by.fingerprint})"
    return f"valid, by a key that you do not know: {found.by.fingerprint}"


def _next(found: LookedAt) -> list[str]:
    from isorun.share.looking import UNKNOWN_KEY

    lines = [f"next: isorun report {shlex.quote(found.path)}"]
    if found.signature == UNKNOWN_KEY and found.by:
        ask = "ask its owner for the fingerprint on another way, then"
        lines.insert(0, f"1. {ask}: isorun keys trust NAME {shlex.quote(found.by.line)}")
    return lines
