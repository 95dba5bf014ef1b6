"""Pages and an API over stores and packages, for one person on a laptop or for a lab.

isorun serve                          the store of this folder, for whoever sits here
isorun serve .isorun resnet56.isorun  these stores and packages
isorun serve --port 0                 on a free port

It listens on 127.0.0.1 alone unless it is told otherwise, changes nothing, and asks no other machine for anything.
Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import sys

from isorun import cli
from isorun.errors import MissingExtra

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument(
        "places", nargs="*", metavar="STORE|PACKAGE", help="what is shown (default: the store of this folder)"
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8008, metavar="N", help="default: 8008; 0 takes a free one")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Serve until the process is told to end."""
    try:
        from isorun.serving import app
        from isorun.serving.gate import Reached
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", "server", "isorun serve") from None
    from isorun.registry import EVERYTHING

    with app.bound(options.host, options.port) as listener:
        address = f"http://{options.host}:{listener.getsockname()[1]}"
        cli.print_json({"url": address}) if options.json else cli.show_text(f"{address} (Ctrl-C ends it)\n")
        sys.stdout.flush()  # whoever started it waits for this line
        reached = Reached.at([address, address.replace("127.0.0.1", "localhost")])
        app.listen(app.gated(app.own_doors(), reached, stranger=EVERYTHING), listener)
    return 0
