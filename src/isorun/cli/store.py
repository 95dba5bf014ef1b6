"""Is a store whole, and what can be saved of one that is not? Nothing is ever deleted.

isorun store verify                looks at every record; exit code 3 when something is damaged or was set aside
isorun store repair                a new database of all that is sound; what is damaged is kept beside it
isorun store share --group lab     the group may read and write the store, too (mode 2770)

Stores in folders only: one behind a URL is looked after by what brings it.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError, UsageError

if TYPE_CHECKING:
    from isorun.store.checking import Repaired, Verified

__all__ = ["declare", "execute"]

_SHOWN = 20


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("action", choices=("verify", "repair", "share"), help="what to do with the store")
    parser.add_argument("--store", metavar="FOLDER", help="where records are kept (default: .isorun in this folder)")
    parser.add_argument("--group", metavar="NAME", help="with share: the group (default: the one the folder has)")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Do it and print what was found."""
    from isorun.store import checking

    folder = _folder(options.action, options.store)
    if options.group and options.action != "share":
        raise UsageError(f"--group is of no use to {options.action}", hint="isorun store share --group NAME")
    if options.action == "verify":
        return _tell_findings(checking.verify(folder), options)
    if options.action == "repair":
        return _tell_repaired(checking.repair(folder), options)
    changed = checking.share(folder, _group_number(options.group))
    if options.json:
        cli.print_json({"store": str(folder.absolute()), "shared": changed})
    else:
        print(f"{folder}: its group may work with it now ({changed:,} files and folders)")
    return 0


def _folder(action: str, store: str | None) -> Path:
    """The folder of the store, which is what these commands work on."""
    from isorun.session import folder_of, store_place

    place = store_place(store)
    folder = folder_of(place)
    if folder is None:
        raise UsageError(
            f"isorun store {action} cannot work on {place}",
            found="a store behind a URL",
            allowed="a store in a folder",
            hint=f"what brings {place.partition('://')[0]}:// checks its records when they are read, "
            "and has its own means to look after them",
        )
    return folder


def _tell_findings(findings: Verified, options: argparse.Namespace) -> int:
    to_repair = bool(findings.damage or findings.unrecorded)
    code = 3 if to_repair or findings.aside else 0
    if options.json:
        cli.print_json(findings.to_json())
        return code
    whole = f"{findings.sound:,} {'record is' if findings.sound == 1 else 'records are'} whole"
    if not findings.damage:
        print(f"{findings.store}: {whole}, and {'nothing is damaged' if not findings.aside else 'some was set aside'}")
    else:
        print(f"{findings.store} is damaged; {whole}")
    for item in findings.damage[:_SHOWN]:
        saved = "; its record is whole elsewhere" if item.saved else ""
        print(f"  {item.where}{f' (run {item.run_id})' if item.run_id else ''}: {item.what}{saved}")
    if len(findings.damage) > _SHOWN:
        print(f"  and {len(findings.damage) - _SHOWN:,} more (all of them with --json)")
    if findings.unrecorded:
        many = f"{len(findings.unrecorded):,} runs have" if len(findings.unrecorded) > 1 else "1 run has"
        print(f"  {many} ended and left a record in the run's folder that the store does not hold")
    _tell_lost(findings.lost)
    _tell_aside(findings.aside)
    if findings.unchecked:
        kept = f"{len(findings.unchecked):,} documents" if len(findings.unchecked) > 1 else "1 document"
        print(f"  not checkable: {kept} of an older isorun, such as {findings.unchecked[0]}, without a digest")
    if to_repair:
        print(f"next: isorun store repair{f' --store {shlex.quote(options.store)}' if options.store else ''}")
    return code


def _tell_lost(run_ids: Sequence[str], unnamed: int = 0) -> None:
    """The runs whose record is nowhere whole, and how many there are of which not even that is known."""
    if run_ids:
        print(f"  lost: {', '.join(run_ids[:_SHOWN])}{' …' if len(run_ids) > _SHOWN else ''}")
    if unnamed:
        more = " more" if run_ids else ""
        print(f"  lost: {unnamed:,}{more} of the runs that were packed; nothing is left that names them")
    if run_ids or unnamed:
        print("  isorun run makes these runs again")


def _tell_aside(paths: Sequence[str]) -> None:
    """What was set aside is told until the user removes it."""
    for path in paths[:_SHOWN]:
        print(f"  kept aside: {path}")
    if len(paths) > _SHOWN:
        print(f"  and {len(paths) - _SHOWN:,} more (all of them with --json)")
    if paths:
        remove = "rm -r" if Path(paths[0]).is_dir() else "rm"
        print(f"  rm removes what is kept aside and of no use any more: {remove} {shlex.quote(paths[0])}")


def _tell_repaired(repaired: Repaired, options: argparse.Namespace) -> int:
    if options.json:
        cli.print_json(repaired.to_json())
        return 0
    if not repaired.aside and not repaired.saved and not repaired.new_key and not repaired.lost:
        print(f"{repaired.store}: nothing is damaged, and nothing was done")
        return 0
    print(f"{repaired.store}: {repaired.kept:,} records kept, {repaired.saved:,} of them from their runs' folders")
    _tell_lost(repaired.lost, repaired.lost_unnamed)
    if repaired.new_key:
        print("  the store has another key now: runs whose commands hold secrets are made again")
    _tell_aside(repaired.aside)
    return 0


def _group_number(name: str | None) -> int | None:
    if name is None:
        return None
    import grp

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise InputError(f"there is no group {name!r} on this machine", hint="getent group lists them") from None
