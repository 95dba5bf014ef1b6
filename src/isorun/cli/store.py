"""Is a store whole, what can be saved of one that is not, what must not be in it, and how does it get elsewhere?

No record is ever deleted.

isorun store verify                looks at every record; exit code 3 when something is damaged or was set aside
isorun store repair                a new database of all that is sound; what is damaged is kept beside it
isorun store share --group lab     the group may read and write the store, too (mode 2770)
isorun store redact DB_HOST        takes what is recorded of a variable out of records, logs and kept studies
isorun store redact --value -      the same for a value, which is read from standard input
isorun store copy .isorun postgresql://lab/isorun     copies records and kept studies to another store, and checks them

redact --dry-run lists where the values stand, with exit code 3 where they do. Without it the code is 3 where something
could not be reached, or a hash alone was recorded of a variable, so that its value is to be given. Cells keep their
ids: finished runs are used again. Backups, what was sent to others, and disk blocks that are free now are not reached.

copy leaves alone what is there already, and goes on where it was cut short; the code is 3 where something contradicts
what is there, or could not be read. --study NAME copies the runs of one study.

A store in PostgreSQL can be verified and copied; for the rest, the message says what to do.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError, UsageError

if TYPE_CHECKING:
    from isorun.store.checking import Repaired, Verified
    from isorun.store.copying import Copied
    from isorun.store.redacting import Redacted

__all__ = ["declare", "execute"]

_SHOWN = 20


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("action", choices=("verify", "repair", "share", "redact", "copy"), help="what to do")
    parser.add_argument("names", nargs="*", metavar="NAME", help="with redact: variables; with copy: from, to")
    parser.add_argument(
        "--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun in this folder)"
    )
    parser.add_argument("--group", metavar="NAME", help="with share: the group (default: the one the folder has)")
    parser.add_argument("--value", metavar="FILE", help="with redact: a value, in a file, or - for standard input")
    parser.add_argument(
        "--value-from-env", action="store_true", help="with redact: the values these variables have now"
    )
    parser.add_argument("--dry-run", action="store_true", help="with redact: only say where the values stand")
    parser.add_argument("--study", metavar="NAME", help="with copy: only the runs of this study")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Do it and print what was found."""
    from isorun.store import checking

    if options.study and options.action != "copy":
        raise UsageError(f"--study is of no use to {options.action}", hint="isorun store copy FROM TO --study NAME")
    if options.action == "copy":
        return _copy(options)
    if options.action == "verify" and _is_server(options.store):
        return _verify_server(options)
    folder = _folder(options.action, options.store)
    if options.group and options.action != "share":
        raise UsageError(f"--group is of no use to {options.action}", hint="isorun store share --group NAME")
    if options.action == "redact":
        return _redact(folder, options)
    if options.names or options.value is not None or options.value_from_env or options.dry_run:
        meant = "--group NAME" if options.action == "share" else "--store FOLDER"
        what = f"names, variables and values are of no use to {options.action}"
        raise UsageError(what, hint=f"isorun store {options.action} {meant}, or isorun store redact NAME")
    if options.action == "verify":
        return _tell_findings(checking.verify(folder), options)
    if options.action == "repair":
        return _tell_repaired(checking.repair(folder), options)
    changed = checking.share(folder, _group_number(options.group))
    if options.json:
        cli.print_json({"store": str(folder.absolute()), "shared": changed})
    else:
        cli.say(f"{folder}: its group may work with it now ({changed:,} files and folders)")
    return 0


def _redact(folder: Path, options: argparse.Namespace) -> int:
    from isorun.store.redacting import redact

    if not options.names and options.value is None and not _is_begun(folder):
        hint = "isorun store redact NAME, or isorun store redact --value - to type the value"
        raise UsageError("nothing is said to be taken out", hint=hint)
    if options.value_from_env and not options.names:
        raise UsageError("--value-from-env needs the names of variables", hint="isorun store redact NAME …")
    values = {name: _value_now(name) for name in options.names} if options.value_from_env else {}
    literals = [] if options.value is None else [_value_in(options.value)]
    done = redact(folder, options.names, values=values, literals=literals, dry_run=options.dry_run)
    return _tell_redacted(done, options)


def _is_begun(folder: Path) -> bool:
    from isorun.store.folder import REDACTING

    return (folder / REDACTING).exists()


def _value_now(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        hint = "without --value-from-env the values are those that records show"
        raise InputError(f"the variable {name!r} has no value here", found="it is not set, or empty", hint=hint)
    return value


def _value_in(place: str) -> str:
    """The value, without the end of its last line."""
    try:
        data = sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        hint = "--value FILE, or --value - for standard input; a value is never given as an argument"
        raise InputError("the file with the value cannot be read", found=error.strerror or "", hint=hint) from None
    return os.fsdecode(data).removesuffix("\n").removesuffix("\r")


def _tell_redacted(done: Redacted, options: argparse.Namespace) -> int:
    holds = bool(done.records or done.files)
    code = 3 if done.unreached or done.value_unknown or (done.dry_run and holds) else 0
    if options.json:
        cli.print_json(done.to_json())
        return code
    many = f"{done.records:,} {'record' if done.records == 1 else 'records'}"
    more = f"{len(done.files):,} {'file' if len(done.files) == 1 else 'files'}"
    if not holds:
        cli.say(f"{done.store}: nothing was found to take out")
    elif done.dry_run:
        cli.say(f"{done.store}: {many} and {more} would be changed; nothing was")
    else:
        cli.say(
            f"{done.store}: {many} and {more} were changed{'; an earlier call is finished' if done.resumed else ''}"
        )
    for path in done.files[:_SHOWN] if done.dry_run else ():
        cli.say(f"  {path}")
    if done.dry_run and len(done.files) > _SHOWN:
        cli.say(f"  and {len(done.files) - _SHOWN:,} more (all of them with --json)")
    _tell_variables(done)
    for where, why in done.unreached[:_SHOWN]:
        cli.say(f"  not reached: {where}: {why}")
    if len(done.unreached) > _SHOWN:
        cli.say(f"  and {len(done.unreached) - _SHOWN:,} more (all of them with --json)")
    if holds and not done.dry_run:
        cli.say(
            "  backups, what was sent to others and free blocks of the disk are not reached: change the secret itself"
        )
    if done.value_unknown:
        words = shlex.join(["store", "redact", *(["--store", options.store] if options.store else [])])
        cli.say(f"next: isorun {words} {' '.join(done.value_unknown)} --value -   (or --value-from-env)")
    return code


def _tell_variables(done: Redacted) -> None:
    """What is to be said of variables, each by its name."""
    if done.fields_only:
        cli.say(f"  {', '.join(done.fields_only)}: only its own fields; texts hold such a value for other reasons, too")
    if done.not_found:
        cli.say(f"  {', '.join(done.not_found)}: nothing is recorded of it")
    if done.value_unknown:
        told = ", ".join(done.value_unknown)
        cli.say(f"  {told}: its value is not known here (a hash alone was recorded), so logs may still hold it")


def _copy(options: argparse.Namespace) -> int:
    from isorun.session import open_existing_store, open_store, store_place
    from isorun.store.copying import copy

    if len(options.names) != 2 or options.store:
        what = "copy takes two stores: from where, and to where"
        raise UsageError(what, hint="isorun store copy .isorun postgresql://lab/isorun")
    places = store_place(options.names[0]), store_place(options.names[1])
    if places[0] == places[1]:
        raise UsageError("a store cannot be copied to itself", found=places[0])
    with open_existing_store(places[0]) as source, open_store(places[1]) as target:
        if options.study:
            from isorun.workflow import kept_of

            cells, documents = kept_of(options.study, source)
            done = copy(source, target, places, cell_ids=cells, documents=documents)
        else:
            done = copy(source, target, places)
    return _tell_copied(done, options)


def _tell_copied(done: Copied, options: argparse.Namespace) -> int:
    from isorun.analysis.evidence import some

    code = 3 if done.conflicts or done.damaged else 0
    if options.json:
        cli.print_json(done.to_json())
        return code
    there = f"{done.records_there:,} and {done.documents_there:,} were there already"
    copied = f"{some(done.records, 'record')} and {some(done.documents, 'document')} were copied"
    cli.say(f"{done.target}: {copied}; {there}")
    for word, found in (("in conflict, and left as it is there", done.conflicts), ("damaged", done.damaged)):
        for what, why in found[:_SHOWN]:
            cli.say(f"  {word}: {what}: {why}")
        if len(found) > _SHOWN:
            cli.say(f"  and {len(found) - _SHOWN:,} more (all of them with --json)")
    if done.going_on:
        goes = "goes on, and is" if done.going_on == 1 else "go on, and are"
        cli.say(f"  {some(done.going_on, 'run')} of it {goes} not copied: the same command does that later,")
        cli.say("  and whoever runs the study in the other store meanwhile makes the same there as well")
    if done.withheld:
        cli.say(
            f"  {done.withheld:,} of them are of commands that hold secrets: the key of the store that they came from"
        )
        cli.say("  tells those apart, so that whoever runs such a study on in the other store makes these runs again")
    return code


def _is_server(store: str | None) -> bool:
    from isorun.session import is_postgres, store_place

    return is_postgres(store_place(store))


def _verify_server(options: argparse.Namespace) -> int:
    from isorun.session import open_existing_store, store_place
    from isorun.store.postgres import PostgresStore

    with open_existing_store(store_place(options.store)) as store:
        assert isinstance(store, PostgresStore)
        return _tell_findings(store.verify(), options)


_ON_A_SERVER = {
    "repair": "isorun store verify names what is damaged; isorun store copy {place} FOLDER saves all that is sound, "
    "and a backup of the database (pg_dump, pg_restore) has the rest",
    "share": "whoever owns the schema lets others in: GRANT USAGE ON SCHEMA isorun TO lab; GRANT SELECT, INSERT, "
    "UPDATE, DELETE ON ALL TABLES IN SCHEMA isorun TO lab; GRANT USAGE ON ALL SEQUENCES IN SCHEMA isorun TO lab",
    "redact": "isorun store copy {place} FOLDER, isorun store redact --store FOLDER, then DROP SCHEMA isorun CASCADE "
    "in the database, and isorun store copy FOLDER {place}",
}


def _folder(action: str, store: str | None) -> Path:
    """The folder of the store, which is what these commands work on."""
    from isorun.session import folder_of, store_place

    place = store_place(store)
    folder = folder_of(place)
    if _is_server(store):
        raise UsageError(
            f"isorun store {action} cannot work on {place}",
            found="a store in PostgreSQL",
            allowed="a store in a folder",
            hint=_ON_A_SERVER[action].format(place=place),
        )
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
    code = 3 if to_repair or findings.aside or findings.redacting else 0
    if options.json:
        cli.print_json(findings.to_json())
        return code
    whole = f"{findings.sound:,} {'record is' if findings.sound == 1 else 'records are'} whole"
    if not findings.damage:
        cli.say(
            f"{findings.store}: {whole}, and {'nothing is damaged' if not findings.aside else 'some was set aside'}"
        )
    else:
        cli.say(f"{findings.store} is damaged; {whole}")
    for item in findings.damage[:_SHOWN]:
        saved = "; its record is whole elsewhere" if item.saved else ""
        cli.say(f"  {item.where}{f' (run {item.run_id})' if item.run_id else ''}: {item.what}{saved}")
    if len(findings.damage) > _SHOWN:
        cli.say(f"  and {len(findings.damage) - _SHOWN:,} more (all of them with --json)")
    if findings.unrecorded:
        many = f"{len(findings.unrecorded):,} runs have" if len(findings.unrecorded) > 1 else "1 run has"
        cli.say(f"  {many} ended and left a record in the run's folder that the store does not hold")
    _tell_lost(findings.lost)
    _tell_aside(findings.aside)
    if findings.unchecked:
        kept = f"{len(findings.unchecked):,} documents" if len(findings.unchecked) > 1 else "1 document"
        cli.say(f"  not checkable: {kept} of an older isorun, such as {findings.unchecked[0]}, without a digest")
    if findings.redacting:
        cli.say("  values were being taken out, which was killed: isorun store redact, without a name, finishes it")
    if to_repair and _is_server(options.store):
        cli.say(f"next: isorun store copy {shlex.quote(findings.store)} FOLDER   (saves all that is sound)")
    elif to_repair:
        cli.say(f"next: isorun store repair{f' --store {shlex.quote(options.store)}' if options.store else ''}")
    return code


def _tell_lost(run_ids: Sequence[str], unnamed: int = 0) -> None:
    """The runs whose record is nowhere whole, and how many there are of which not even that is known."""
    if run_ids:
        cli.say(f"  lost: {', '.join(run_ids[:_SHOWN])}{' …' if len(run_ids) > _SHOWN else ''}")
    if unnamed:
        more = " more" if run_ids else ""
        cli.say(f"  lost: {unnamed:,}{more} of the runs that were packed; nothing is left that names them")
    if run_ids or unnamed:
        cli.say("  isorun run makes these runs again")


def _tell_aside(paths: Sequence[str]) -> None:
    """What was set aside is told until the user removes it."""
    for path in paths[:_SHOWN]:
        cli.say(f"  kept aside: {path}")
    if len(paths) > _SHOWN:
        cli.say(f"  and {len(paths) - _SHOWN:,} more (all of them with --json)")
    if paths:
        remove = "rm -r" if Path(paths[0]).is_dir() else "rm"
        cli.say(f"  rm removes what is kept aside and of no use any more: {remove} {shlex.quote(paths[0])}")


def _tell_repaired(repaired: Repaired, options: argparse.Namespace) -> int:
    if options.json:
        cli.print_json(repaired.to_json())
        return 0
    if not repaired.aside and not repaired.saved and not repaired.new_key and not repaired.lost:
        cli.say(f"{repaired.store}: nothing is damaged, and nothing was done")
        return 0
    cli.say(f"{repaired.store}: {repaired.kept:,} records kept, {repaired.saved:,} of them from their runs' folders")
    _tell_lost(repaired.lost, repaired.lost_unnamed)
    if repaired.new_key:
        cli.say("  the store has another key now: runs whose commands hold secrets are made again")
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
