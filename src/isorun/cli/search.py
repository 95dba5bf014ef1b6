"""Find packages in a registry.

isorun search resnet cifar10      all words (up to 20) have to be found: in names, studies, metrics, environments
isorun search                     everything that you may see
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import UsageError, harmless

if TYPE_CHECKING:
    from isorun.registries import Client, Offered

__all__ = ["declare", "execute"]

_MOST = 100


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("words", nargs="*", metavar="WORDS", help="what to look for")
    parser.add_argument(
        "--most", type=int, default=20, metavar="N", help=f"how many are shown (default: 20, at most {_MOST})"
    )
    cli.declare_registry(parser)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Search and print."""
    from isorun.registries import Client
    from isorun.registries.logins import chosen_registry

    if not 1 <= options.most <= _MOST:
        raise UsageError("--most is out of range", found=str(options.most), allowed=f"1 to {_MOST}")
    client = Client(chosen_registry(options.registry))
    found = client.search(" ".join(options.words), most=options.most)
    if options.json:
        cli.print_json({"registry": client.url, "packages": [dict(item.told) for item in found]})
        return 0
    many = f"{len(found)} package{'s' if len(found) > 1 else ''} in {client.url}"
    more = " (there may be more: --most N)" if len(found) == options.most else ""
    lines = [f"{many}{more}" if found else _none(client, options.words)]
    width = max((len(str(item)) for item in found), default=0)
    lines += [f"  {f'registry:{item}':{width + 9}}  {_said(item)}" for item in found]
    if found:
        lines += ["", f"isorun pull registry:{found[0]}"]
    cli.show_text("".join(f"{harmless(line)}\n" for line in lines))
    return 0


def _none(client: Client, words: list[str]) -> str:
    """What was looked for, and that others may see more: the registry need not be empty."""
    seen = f"no package that you may see in {client.url}"
    return f"{seen} has all of these words: {' '.join(words)}" if words else seen


def _said(item: Offered) -> str:
    package = item.told.get("package")
    about = package if isinstance(package, dict) else {}
    return f"{about.get('runs', '?')} runs of {about.get('study', '?')}, {item.tier}"
