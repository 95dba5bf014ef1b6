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
    from isorun.registries import Offered

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
    many = "no package" if not found else f"{len(found)} package{'s' if len(found) > 1 else ''}"
    lines = [f"{many} in {client.url}{' (there may be more: --most N)' if len(found) == options.most else ''}"]
    width = max((len(str(item)) for item in found), default=0)
    lines += [f"  {f'registry:{item}':{width + 9}}  {_said(item)}" for item in found]
    if found:
        lines += ["", f"isorun pull registry:{found[0]}"]
    cli.show_text("".join(f"{harmless(line)}\n" for line in lines))
    return 0


def _said(item: Offered) -> str:
    package = item.told.get("package")
    about = package if isinstance(package, dict) else {}
    return f"{about.get('runs', '?')} runs of {about.get('study', '?')}, {item.tier}"
