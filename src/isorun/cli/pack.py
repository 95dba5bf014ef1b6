"""One file that holds a study: its runs, design, environment, code and data digests; signed if a key is there.

isorun pack study.toml -o resnet56.isorun
isorun pack study.toml --dry-run             what would be in it, and what stays out
isorun pack study.toml --snapshot            with the files of the code: nobody needs its repository
isorun pack study.toml --key lab.key         signed with this key (isorun keys new makes one)
isorun pack study.toml --plain FOLDER        the same runs as CSV (or Parquet) for those who have no isorun
isorun pack --from-plain FOLDER -o x.isorun  a package of such tables

The same study gives the same file, byte for byte; its address is the SHA-256 of the list of its members. Files and
differences that look as if they held a secret stay out, and are told.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun import cli
from isorun.errors import UsageError, harmless

if TYPE_CHECKING:
    from isorun.share.packing import PackedStudy

__all__ = ["declare", "execute"]

_SHOWN = 8


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "a study file, or the name of an earlier study (default: the latest)"
    parser.add_argument("study", nargs="?", metavar="STUDY", help=about)
    parser.add_argument("-o", "--output", metavar="FILE", help="the package (default: named as the study is)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be in it, and write nothing")
    about = "sign with this private key (default: ISORUN_KEY, or the one that isorun keys new made)"
    parser.add_argument("--key", metavar="FILE", help=about)
    parser.add_argument("--no-sign", action="store_true", help="do not sign, also where a key is there")
    parser.add_argument("--no-code", action="store_true", help="of the code only commits and digests")
    about = "put in the files of the code, also those that a commit has: nobody needs its repository then"
    parser.add_argument("--snapshot", action="store_true", help=about)
    about = "put this file in although it looks as if it held a secret; may be repeated"
    parser.add_argument("--with", dest="allowed", action="append", default=[], metavar="PATH", help=about)
    parser.add_argument("--license", metavar="SPDX", help="the licence that others may use it under: CC-BY-4.0")
    parser.add_argument("--plain", metavar="FOLDER", help="write plain tables there instead of a package")
    parser.add_argument("--parquet", action="store_true", help="with --plain: Parquet instead of CSV (isorun[tables])")
    parser.add_argument("--from-plain", metavar="FOLDER", help="make the package of plain tables instead of a study")
    parser.add_argument(
        "--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun beside the study)"
    )
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Pack the study, and say what is in the package."""
    if options.plain or options.from_plain:
        return _plain(options)
    if options.parquet:
        raise UsageError("--parquet says how --plain writes", hint="isorun pack study.toml --plain FOLDER --parquet")
    packed = _packed(options)
    return _tell(options, packed.to_json(), _told(packed))


def _packed(options: argparse.Namespace) -> PackedStudy:
    from isorun import workflow
    from isorun.share.packing import pack

    source = options.study
    if source is None:
        recent = workflow.recent(options.store)
        if not recent:
            raise UsageError("which study is to be packed is not said", hint="isorun pack study.toml")
        source = recent[0]
    return pack(
        source,
        options.output,
        store=options.store,
        key=_key(options),
        with_code=not options.no_code,
        snapshot=options.snapshot,
        allowed=options.allowed,
        license_id=options.license or "",
        dry_run=options.dry_run,
    )


def _key(options: argparse.Namespace) -> Path | None:
    """What the package is signed with."""
    from isorun.share.keys import default_key

    if options.key and options.no_sign:
        raise UsageError("--key and --no-sign contradict each other", hint="one of them")
    return Path(options.key) if options.key else None if options.no_sign else default_key()


def _told(packed: PackedStudy) -> str:
    """The verdict, what is in it, what stayed out, and the next command."""
    manifest = packed.manifest
    states = ", ".join(f"{count:,} {state}" for state, count in packed.states.items())
    named = ", ".join(packed.places)
    where = packed.path or "a package, which was not written"
    lines = [
        f"{where}: {manifest.runs:,} runs of {manifest.study} ({states}), {packed.size:,} bytes",
        f"  address    {manifest.address}",
        f"  signed     {f'by {packed.signed_by.fingerprint}' if packed.signed_by else 'no'}",
        f"  series     {manifest.points:,} points",
        *_code_lines(packed),
        f"  machines   {f'{named} (their names and folders are in the records)' if named else 'none is named'}",
    ]
    if not packed.path:
        lines += ["  members", *(f"    {item.size:>12,}  {item.name}" for item in manifest.members)]
    for number, item in enumerate(packed.code.left_out[:_SHOWN], 1):
        lines.append(f"{number}. left out: {item['path']}: {item['why']}")
    if len(packed.code.left_out) > _SHOWN:
        lines.append(f"   and {len(packed.code.left_out) - _SHOWN:,} more (all of them with --json)")
    if any("secret" in item["why"] for item in packed.code.left_out):
        lines.append("   --with PATH puts in what you looked at and know to be none")
    if packed.path:
        lines.append(f"next: isorun verify {shlex.quote(packed.path)}")
    return "".join(f"{harmless(line)}\n" for line in lines)


def _code_lines(packed: PackedStudy) -> list[str]:
    commits = [str(item["commit"])[:12] for item in packed.code.versions if item.get("commit")]
    differences = sum("difference" in item for item in packed.code.versions)
    parts = [f"commit {', '.join(commits[:3])}{' …' if len(commits) > 3 else ''}"] if commits else []
    parts += ["its uncommitted changes"] if differences else []
    count = len(packed.code.files)
    parts += [f"{count:,} {'file' if count == 1 else 'files'} of it in the package"] if count else []
    listed = [f"    {item['path']}" for item in packed.code.files[:_SHOWN]]
    listed += [f"    and {count - _SHOWN:,} more (all of them with --json)"] if count > _SHOWN else []
    return [f"  code       {', '.join(parts) or ('digests alone' if packed.code.versions else 'none')}", *listed]


def _plain(options: argparse.Namespace) -> int:
    from isorun.share import plain

    if options.plain and options.from_plain:
        raise UsageError("--plain and --from-plain contradict each other", hint="one of them")
    if options.from_plain:
        packed = plain.packed_from(
            Path(options.from_plain),
            options.output,
            key=_key(options),
            license_id=options.license or "",
            dry_run=options.dry_run,
        )
        return _tell(options, packed.to_json(), _told(packed))
    written = plain.write_plain(options.study, Path(options.plain), store=options.store, parquet=options.parquet)
    return _tell(options, written.to_json(), written.told())


def _tell(options: argparse.Namespace, found: dict[str, Any], told: str) -> int:
    if options.json:
        cli.print_json(found)
    else:
        cli.show_text(told)
    return 0
