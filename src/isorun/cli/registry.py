"""Versions, users and tokens of a registry; and on the machine that has its files: is it whole?

isorun registry show lab/cifar10/resnet56               all versions, and who replicated them
isorun registry yank lab/cifar10/resnet56@2 --reason "trained on the test data"
isorun registry publish lab/cifar10/resnet56            everyone sees it; hide: those who act for lab
isorun registry user bob                                a new user, and his first token, which is shown once
isorun registry join lab bob                            bob acts for the group lab
isorun registry token --scopes push --owners lab --days 30 --purpose ci
isorun registry audit                                   who did what

isorun registry verify /srv/isorun                      the audit log, and every file against its digest
isorun registry verify /srv/isorun --head 812:9f2c…     and nothing is gone since this was written down
isorun registry sweep | renew | backup /srv/isorun …    remove what cut pushes left; a token for a user; a copy

Exit code 3: verify found damage.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun import cli
from isorun.errors import InputError, RegistryError, UsageError, harmless

if TYPE_CHECKING:
    from isorun.registries import Client
    from isorun.registry.opening import Registry

__all__ = ["declare", "execute"]

_Answer = tuple[Any, Iterable[str]]
_WORDS: Final = {
    "show": "NAME", "yank": "NAME@VERSION", "unyank": "NAME@VERSION", "publish": "NAME", "hide": "NAME",
    "users": "", "user": "USER", "close": "USER", "join": "OWNER USER", "leave": "OWNER USER",
    "tokens": "", "token": "[USER]", "revoke": "NUMBER", "audit": "",
    "verify": "FOLDER", "sweep": "FOLDER", "renew": "FOLDER USER", "backup": "FOLDER TO",
}  # fmt: skip
"""What can be done, and with which words; the last four with the files of a registry."""


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("action", choices=tuple(_WORDS), metavar="ACTION", help=f"what to do: {', '.join(_WORDS)}")
    parser.add_argument("words", nargs="*", metavar="WORDS", help="a package, a user, a group and a user, or a folder")
    parser.add_argument("--reason", metavar="TEXT", help="yank: why the version is not to be used")
    parser.add_argument("--admin", action="store_true", help="user: may administrate the registry")
    about = "token: what it allows, of read, push, yank and admin (default: read)"
    parser.add_argument("--scopes", default="read", metavar="LIST", help=about)
    parser.add_argument("--owners", metavar="LIST", help="token: for whose packages (default: all of yours)")
    parser.add_argument("--days", type=float, default=90.0, metavar="N", help="user, token: how long (default: 90)")
    parser.add_argument("--purpose", metavar="TEXT", help="token: a word to know it by")
    parser.add_argument("--head", metavar="LINE:HASH", help="verify: the end of the audit log as it was written down")
    parser.add_argument("--index", metavar="URL", help="verify, sweep, …: a PostgreSQL that has the index")
    cli.declare_registry(parser)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Do it, and say what came of it."""
    needed = _WORDS[options.action].split()
    least = len([word for word in needed if not word.startswith("[")])
    if not least <= len(options.words) <= len(needed):
        raise UsageError(
            f"isorun registry {options.action} takes {_WORDS[options.action] or 'no words'}",
            found=" ".join(options.words) or "none",
        )
    if options.action in _LOCAL:
        return _locally(options)
    from isorun.registries import Client
    from isorun.registries.logins import chosen_registry

    answer, lines = _REMOTE[options.action](Client(chosen_registry(options.registry)), options)
    _tell(options, answer, lines)
    return 0


def _tell(options: argparse.Namespace, answer: Any, lines: Iterable[str]) -> None:
    if options.json:
        cli.print_json(answer)
    else:
        cli.show_text("".join(f"{harmless(line)}\n" for line in lines))


def _show(client: Client, options: argparse.Namespace) -> _Answer:
    from isorun.packages.names import parse_wanted

    wanted = parse_wanted(options.words[0])
    if wanted.name is None:
        raise InputError("an address is no name", found=options.words[0][:80], allowed="OWNER/PROJECT/NAME")
    found = client.versions(wanted.name)
    lines = [f"registry:{wanted.name} has {len(found)} version{'s' if len(found) > 1 else ''} in {client.url}"]
    for item in found:
        yanked = f"; yanked: {item.yanked}" if item.yanked else ""
        lines.append(
            f"  @{item.version}  {item.told.get('pushed_at')} by {item.told.get('pushed_by')}, {item.tier}{yanked}"
        )
        lines.append(f"      {item.address}")
    return {"name": str(wanted.name), "versions": [dict(item.told) for item in found]}, lines


def _yank(client: Client, options: argparse.Namespace) -> _Answer:
    if options.action == "yank" and not options.reason:
        raise UsageError("a yank needs a reason", hint="--reason 'trained on the test data'")
    path = f"{_versioned(options.words[0])}/yank"
    if options.action == "yank":
        told = client.ask("PUT", path, {"reason": options.reason})
        return told, [f"{options.words[0]} was yanked: it is had by its number alone"]
    return client.ask("DELETE", path), [f"{options.words[0]} is as good as before"]


def _publish(client: Client, options: argparse.Namespace) -> _Answer:
    public = options.action == "publish"
    client.ask("PUT", f"{_named(options.words[0])}/visibility", {"public": public})
    seen = "everyone who reaches the registry" if public else "those who act for its owner"
    return {"name": options.words[0], "public": public}, [f"{options.words[0]} is seen by {seen}"]


def _users(client: Client, _: argparse.Namespace) -> _Answer:
    found = client.rows("/api/users", "users", "user")
    lines = [
        f"{item['user']}{' (administrates)' if item.get('admin') else ''}{' closed' if item.get('closed_at') else ''}"
        for item in found
    ]
    return {"users": found}, lines


def _user(client: Client, options: argparse.Namespace) -> _Answer:
    asked = {"user": options.words[0], "admin": options.admin, "days": options.days}
    return _shown_once(client.ask("POST", "/api/users", asked))


def _token(client: Client, options: argparse.Namespace) -> _Answer:
    asked = {
        "scopes": options.scopes.split(","),
        "owners": options.owners.split(",") if options.owners else [],
        "days": options.days,
        "purpose": options.purpose or "",
        "user": options.words[0] if options.words else "",
    }
    return _shown_once(client.ask("POST", "/api/tokens", asked))


def _shown_once(told: dict[str, Any]) -> _Answer:
    if not all(isinstance(told.get(name), str) and told[name] for name in ("token", "user", "expires_at")):
        raise RegistryError("the registry does not answer as a registry of isorun", found="no token")
    about = f"token {told.get('number')} of {told.get('user')}: {_listed(told.get('scopes'), ', ')}"
    ends = f"until {told.get('expires_at')}; it is shown this once"
    return told, [f"{about}, {ends}", f"  {told.get('token')}"]


def _tokens(client: Client, _: argparse.Namespace) -> _Answer:
    needed = ("number", "user", "scopes", "owners", "revoked_at", "expires_at", "purpose")
    found = client.rows("/api/tokens", "tokens", *needed)
    lines = [
        f"{item['number']!s:>4}  {item['user']}  {_listed(item['scopes'])}  {_listed(item['owners']) or 'all owners'}  "
        f"{'revoked' if item['revoked_at'] else 'until ' + str(item['expires_at'])}  {item['purpose']}"
        for item in found
    ]
    return {"tokens": found}, lines


def _listed(words: object, joint: str = ",") -> str:
    return joint.join(map(str, words)) if isinstance(words, list) else ""


def _audit(client: Client, _: argparse.Namespace) -> _Answer:
    found: list[dict[str, Any]] = []
    needed, last = ("line", "at", "user", "action", "subject", "details"), 0
    while lines := client.rows(f"/api/audit?after={last}", "lines", *needed):
        if not isinstance(lines[-1]["line"], int) or lines[-1]["line"] <= last:
            raise RegistryError(f"{client.url} tells the same lines of its log again", found=f"after line {last}")
        found += lines
        last = lines[-1]["line"]
    said = [
        f"{item['line']!s:>6}  {item['at']}  {item['user'] or '-'} {item['action']} {item['subject']} {item['details']}"
        for item in found
    ]
    return {"lines": found}, said


def _done(method: str, path: str, said: str) -> Callable[[Client, argparse.Namespace], _Answer]:
    """An action that is one request whose words are parts of its path."""

    def do(client: Client, options: argparse.Namespace) -> _Answer:
        client.ask(method, path.format(*map(_part, options.words)))
        return {"done": options.action, "words": options.words}, [said.format(*options.words)]

    return do


_REMOTE: Final[dict[str, Callable[[Client, argparse.Namespace], _Answer]]] = {
    "show": _show,
    "yank": _yank,
    "unyank": _yank,
    "publish": _publish,
    "hide": _publish,
    "users": _users,
    "user": _user,
    "close": _done("DELETE", "/api/users/{0}", "{0} may do nothing any more; what he pushed stays"),
    "join": _done("PUT", "/api/owners/{0}/members/{1}", "{1} acts for {0}"),
    "leave": _done("DELETE", "/api/owners/{0}/members/{1}", "{1} acts for {0} no more"),
    "tokens": _tokens,
    "token": _token,
    "revoke": _done("DELETE", "/api/tokens/{0}", "token {0} is worth nothing any more"),
    "audit": _audit,
}


def _part(text: str) -> str:
    from isorun.packages.names import valid_part

    if not valid_part(text):
        raise InputError(
            "this is no name", found=repr(text[:80]), allowed="small letters and digits, . _ - between them"
        )
    return text


def _named(text: str) -> str:
    from isorun.packages.names import parse_name

    return f"/api/packages/{parse_name(text.removeprefix('registry:'))}"


def _versioned(text: str) -> str:
    from isorun.packages.names import parse_wanted

    wanted = parse_wanted(text)
    if wanted.name is None or not wanted.version:
        raise InputError("which version is meant is not said", found=text[:80], allowed="OWNER/PROJECT/NAME@VERSION")
    return f"/api/packages/{wanted.name}/versions/{wanted.version}"


def _locally(options: argparse.Namespace) -> int:
    """With the files of a registry."""
    from isorun.registry.opening import Registry
    from isorun.store import given_place

    index = given_place(options.index) if options.index else ""
    with closing(Registry(options.words[0], index, create=False)) as registry:
        return _LOCAL[options.action](registry, options)


def _verify(registry: Registry, options: argparse.Namespace) -> int:
    from isorun.registry.verifying import parse_head, verify_registry

    found = verify_registry(registry, parse_head(options.head) if options.head else None)
    if found.damage:
        lines = [
            f"{registry.folder} is damaged",
            *(f"  {number}. {said}" for number, said in enumerate(found.damage, 1)),
        ]
    else:
        lines = [
            f"{registry.folder} is whole: {found.versions:,} versions, {found.files:,} files",
            f"  audit log   {found.head.line:,} lines, head {found.head}",
            *_uncovered(found.uncovered),
            "",
            "Write the head down elsewhere: with it, verify finds a log that was cut or made anew.",
        ]
    _tell(options, {"registry": str(registry.folder), **found.to_json()}, lines)
    return 3 if found.damage else 0


def _uncovered(names: Sequence[str]) -> list[str]:
    """What was made before the log had digests of rows."""
    if not names:
        return []
    shown = f"{', '.join(names[:5])}{f' and {len(names) - 5:,} more' if len(names) > 5 else ''}"
    return [f"  not covered {shown}: made before the log held digests of rows, so that a replaced one is not seen"]


def _sweep(registry: Registry, options: argparse.Namespace) -> int:
    removed = registry.sweep()
    said = "somebody pushes just now: nothing was swept" if removed is None else f"{len(removed)} files were removed"
    _tell(options, {"removed": removed}, [said])
    return 0


def _renew(registry: Registry, options: argparse.Namespace) -> int:
    answer, lines = _shown_once(registry.people.renew(options.words[1], options.days).to_json())
    _tell(options, answer, lines)
    return 0


def _backup(registry: Registry, options: argparse.Namespace) -> int:
    from isorun.registry.backups import back_up

    copied = back_up(registry, Path(options.words[1]))
    said = f"{options.words[1]}: a copy of the registry; {copied:,} files are new in it"
    _tell(options, {"to": options.words[1], "copied": copied}, [said])
    return 0


_LOCAL: Final[dict[str, Callable[[Registry, argparse.Namespace], int]]] = {
    "verify": _verify,
    "sweep": _sweep,
    "renew": _renew,
    "backup": _backup,
}
