"""Keys to sign packages with, and keys of others that you trust.

isorun keys new                          a key of your own; prints the line to give to others
isorun keys show                         that line again
isorun keys trust lab "ed25519 AAAA…"    trust a key under this name (or a file with the line)
isorun keys list                         whom you trust
isorun keys forget lab                   no more
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError, UsageError, harmless

if TYPE_CHECKING:
    from isorun.share.keys import PublicKey

__all__ = ["declare", "execute"]

_ACTIONS = {"new": 0, "show": 0, "list": 0, "trust": 2, "forget": 1}


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("action", nargs="?", default="list", choices=tuple(_ACTIONS), help="what to do (default: list)")
    parser.add_argument("words", nargs="*", metavar="NAME", help="trust: a name, and the key or a file; forget: a name")
    parser.add_argument("-o", "--output", metavar="FILE", help="new: the file of the private key")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Make, show, trust or forget keys."""
    from isorun.share import keys

    if len(options.words) != _ACTIONS[options.action]:
        needed = {"trust": "isorun keys trust NAME KEY", "forget": "isorun keys forget NAME"}
        raise UsageError(
            f"isorun keys {options.action} takes {_ACTIONS[options.action]} words",
            found=" ".join(options.words) or "none",
            hint=needed.get(options.action, f"isorun keys {options.action}"),
        )
    if options.action == "new":
        path, made = keys.new_key(Path(options.output) if options.output else None)
        return _tell(options, [made], f"{path}: a new key; whoever has this file signs as you")
    if options.action == "show":
        own = keys.default_key()
        if own is None:
            raise InputError("you have no key to sign with", hint="isorun keys new makes one")
        return _tell(options, [keys.signer(own)[0]], f"{own}: your key")
    if options.action == "trust":
        named = keys.trust(keys.public_key(options.words[1]), options.words[0])
        return _tell(options, [named], f"packages signed with this key are by {named.name} from now on")
    if options.action == "forget":
        keys.forget(options.words[0])
        return _tell(options, [], f"{options.words[0]} is trusted no more")
    trusted = keys.trusted_keys()
    return _tell(options, trusted, _trusted_words(len(trusted)))


def _trusted_words(count: int) -> str:
    return "no key is trusted" if not count else "1 key is trusted" if count == 1 else f"{count:,} keys are trusted"


def _tell(options: argparse.Namespace, found: list[PublicKey] | tuple[PublicKey, ...], said: str) -> int:
    if options.json:
        cli.print_json([{"name": key.name, "key": key.line, "fingerprint": key.fingerprint} for key in found])
        return 0
    lines = [said]
    for key in found:
        lines += [f"  {key.line}", f"  {key.fingerprint}"]
    cli.show_text("".join(f"{harmless(line)}\n" for line in lines))
    return 0
