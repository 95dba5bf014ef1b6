"""Log in to a registry: keep a token for it.

isorun login https://isorun.lab.org                      asks for the token, without showing it
isorun login https://isorun.lab.org --token-file FILE    reads it from a file; - is the standard input
isorun login http://127.0.0.1:8008 --set-up ann          the first user of a new registry, with its one-time token
isorun login --token-file -                              in CI, where ISORUN_REGISTRY names the registry
isorun login https://isorun.lab.org --forget             keeps the token no more

The token comes from whoever administrates the registry. It is kept in ~/.config/isorun, readable for you alone, sent to
this registry and to no other, and never shown. The registry is the one that is meant from then on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError, RegistryDenied, harmless

if TYPE_CHECKING:
    from isorun.registries import Client

__all__ = ["declare", "execute"]

_LONGEST = 200


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "the registry, such as https://isorun.lab.org (default: ISORUN_REGISTRY, or the one logged in to last)"
    parser.add_argument("url", nargs="?", metavar="URL", help=about)
    parser.add_argument("--token-file", metavar="FILE", help="a file with the token; - reads the standard input")
    parser.add_argument("--set-up", metavar="USER", help="make the first user of a new registry, who administrates it")
    parser.add_argument("--plain-http", action="store_true", help="send the token unencrypted to another machine")
    parser.add_argument("--forget", action="store_true", help="keep no token for this registry any more")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Ask who the token belongs to, and keep it."""
    from isorun.registries import Client, logins

    url = logins.chosen_registry(options.url)
    if options.forget:
        logins.forget(url)
        return _tell(options, {"registry": url}, f"no token is kept for {url} any more")
    token = _token(options, url)
    client = Client(url, token, plain_http=options.plain_http)
    if options.set_up:
        token = _fit(_first_token(client, options.set_up))
        client = Client(url, token, plain_http=options.plain_http)
    me = client.me()
    if not me.get("user"):
        hint = f"isorun login {url} --set-up USER, if it is the one-time token of a new registry"
        raise RegistryDenied(f"{url} does not know whose token this is", hint=hint)
    kept = logins.remember(url, token, plain_http=options.plain_http)
    told = {name: me.get(name) for name in ("user", "scopes", "owners")}
    said = f"{url}: you are {me['user']}, and may {', '.join(map(str, me.get('scopes', [])))}; the token is in {kept}"
    if "read" not in me.get("scopes", []):
        said += "; without the scope read it sees public packages alone"
    return _tell(options, {"registry": url, **told, "kept": str(kept)}, said)


def _first_token(client: Client, user: str) -> str:
    """The token of the first user, for the one-time token of a new registry."""
    try:
        return str(client.ask("POST", "/api/setup", {"user": user}).get("token", ""))
    except RegistryDenied as error:
        raise RegistryDenied(
            f"{client.url} does not take this as its one-time token",
            found=error.what,
            allowed="the one that isorun serve printed last, within 24 hours, while the registry has no user",
            hint="every start of a registry without users prints another; where it has one, ask him for a token",
        ) from None


def _token(options: argparse.Namespace, url: str) -> str:
    """The token, from a file, or from whoever sits at the terminal."""
    if options.token_file not in (None, "-"):
        try:
            with Path(options.token_file).open(encoding="utf-8") as file:
                return _fit(file.read(_LONGEST + 2))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no text"
            raise InputError(f"the token file {options.token_file} cannot be read", found=why) from None
    if options.token_file or not sys.stdin.isatty():
        return _fit(sys.stdin.readline(_LONGEST + 2))
    import getpass

    return _fit(getpass.getpass(f"token for {url}: "))


def _fit(text: str) -> str:
    """A token that can be sent; what is wrong with one is told without a word of it."""
    token = text.strip()
    if not token or len(token) > _LONGEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            "this is no token", found="nothing" if not token else f"{len(token)} characters", hint="isorun_…"
        )
    return token


def _tell(options: argparse.Namespace, told: dict[str, object], said: str) -> int:
    if options.json:
        cli.print_json(told)
    else:
        cli.show_text(f"{harmless(said)}\n")
    return 0
