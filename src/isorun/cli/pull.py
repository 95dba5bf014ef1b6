"""Get a package from a registry as a file.

isorun pull registry:lab/cifar10/resnet56@3                 resnet56-3.isorun, here
isorun pull registry:lab/cifar10/resnet56 -o base.isorun    the latest version that was not yanked
isorun pull registry:sha256:614bf…                          whatever has this address

Every byte is checked before the file has its name. Commands that compare take a package by its name, too:
isorun check study.toml --baseline registry:lab/cifar10/resnet56@3
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError, harmless
from isorun.replaceable import refuse_present

if TYPE_CHECKING:
    from isorun.registries import Offered

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("package", metavar="registry:NAME@VERSION", help="what is wanted: a name, or an address")
    parser.add_argument("-o", "--output", metavar="FILE", help="where it goes (default: NAME-VERSION.isorun)")
    cli.declare_registry(parser)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Pull, and say what it is."""
    from isorun.packages.names import parse_wanted
    from isorun.registries import Client
    from isorun.registries.logins import chosen_registry

    client = Client(chosen_registry(options.registry))
    offered = client.offered(parse_wanted(options.package))
    target = Path(options.output or f"{offered.name.name}-{offered.version}.isorun")
    if target.exists() and not options.output:
        raise InputError(f"there is a file {target} already", hint=f"isorun pull {options.package} -o FILE")
    refuse_present(target)
    _copy(client.pull(offered, observer=cli.tell), target)
    if options.json:
        cli.print_json({**offered.told, "file": str(target), "registry": client.url})
    else:
        cli.show_text("".join(f"{harmless(line)}\n" for line in _told(offered, target, client.url)))
    return 0


def _copy(source: Path, target: Path) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            shutil.copyfile(source, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target} cannot be written", found=error.strerror or str(error)) from None


def _told(offered: Offered, target: Path, url: str) -> list[str]:
    lines = [
        f"{target}: registry:{offered}, {offered.size:,} bytes, every one checked",
        f"  address    {offered.address}",
        f"  registry   {url}, pushed by {offered.told.get('pushed_by')} at {offered.told.get('pushed_at')}",
        f"  tier       {offered.tier}",
    ]
    if offered.yanked:
        lines += ["", f"1. This version was yanked: {offered.yanked}", f"   isorun registry show {offered.name}"]
    return lines
