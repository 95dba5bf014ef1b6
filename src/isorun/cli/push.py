"""Give a package to a registry, where others find it by name.

isorun push resnet56.isorun lab/cifar10/resnet56            the next version of this package
isorun push resnet56.isorun                                 under your own name: USER/STUDY/FILE
isorun push mine.isorun ann/cifar10/resnet56-again --replicates sha256:614bf…

A version never changes: the same bytes again are the same version, other bytes are a new one. A new package is seen by
those who act for its owner, and with --public by everyone who reaches the registry.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError, harmless

if TYPE_CHECKING:
    from isorun.packages.names import Wanted
    from isorun.registries import Client

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("package", metavar="PACKAGE", help="a file that isorun pack made")
    about = "what it is called there; @VERSION where it has to be this one (default: USER/STUDY/FILE)"
    parser.add_argument("name", nargs="?", metavar="OWNER/PROJECT/NAME", help=about)
    parser.add_argument("--replicates", metavar="ADDRESS", help="the package whose result these runs repeat")
    parser.add_argument("--public", action="store_true", help="a new package is seen by everyone")
    cli.declare_registry(parser)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Push, and say what it is called."""
    from isorun.registries import Client
    from isorun.registries.logins import chosen_registry

    client = Client(chosen_registry(options.registry))
    path = Path(options.package)
    wanted = _wanted(options, client, path)
    replicates = _address(options.replicates, client) if options.replicates else ""
    offered, new = client.push(path, wanted, replicates=replicates, public=options.public, observer=cli.tell)
    if options.json:
        cli.print_json({**offered.told, "new": new, "registry": client.url})
        return 0
    seen = "everyone" if offered.told.get("public") else f"those who act for {offered.name.owner}"
    lines = [
        f"registry:{offered} {'is new' if new else 'was there already, with the same bytes'}",
        f"  address    {offered.address}",
        f"  registry   {client.url}",
        f"  seen by    {seen}",
    ]
    lines += [f"  replicates {replicates}"] if replicates else []
    lines += [f"  yanked     {offered.yanked}"] if offered.yanked else []
    cli.show_text("".join(f"{harmless(line)}\n" for line in lines))
    return 0


def _wanted(options: argparse.Namespace, client: Client, path: Path) -> Wanted:
    """The name that was given, or one of the user's own."""
    from isorun.packages.names import PackageName, parse_wanted, valid_part
    from isorun.packages.names import Wanted as Asked
    from isorun.packages.reading import open_package

    if options.name:
        wanted = parse_wanted(options.name)
        if wanted.name is None:
            raise InputError("an address is no name", found=options.name[:80], allowed="OWNER/PROJECT/NAME")
        return wanted
    with open_package(path) as package:
        study = package.manifest.study
    parts = [str(client.me().get("user") or ""), _part(study), _part(path.stem)]
    if not all(map(valid_part, parts)):
        raise InputError("what it is to be called is not said", hint=f"isorun push {path} OWNER/PROJECT/NAME")
    return Asked(PackageName(*parts))


def _part(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].rstrip("-")


def _address(text: str, client: Client) -> str:
    """The address of what is replicated, which may be named as well."""
    from isorun.packages.names import parse_wanted

    wanted = parse_wanted(text)
    return wanted.address or client.offered(wanted).address
