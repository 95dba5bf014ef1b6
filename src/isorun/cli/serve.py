"""Pages and an API over stores and packages, for one person on a laptop or for a lab.

isorun serve                                  the store of this folder, for whoever sits here
isorun serve .isorun resnet56.isorun          these stores and packages
isorun serve --registry /srv/isorun           a registry: packages of many people, by name and version
isorun serve --registry /srv/isorun --index postgresql://lab/isorun --url https://isorun.lab.org

It listens on 127.0.0.1 alone unless it is told otherwise, and asks no other machine for anything. Without a registry it
changes nothing. A registry is made in an empty folder; its first start prints a one-time token to set it up with. For
others, let a proxy that speaks TLS pass requests on, and name its address with --url. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from isorun import cli
from isorun.errors import MissingExtra, UsageError
from isorun.own_machine import is_this_machine

if TYPE_CHECKING:
    from isorun.registry.opening import Registry

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument(
        "places", nargs="*", metavar="STORE|PACKAGE", help="what is shown (default: the store of this folder)"
    )
    parser.add_argument(
        "--registry", metavar="FOLDER", help="serve the registry in this folder, made where it is missing"
    )
    parser.add_argument("--index", metavar="URL", help="a PostgreSQL that has the registry's index (default: SQLite)")
    parser.add_argument("--url", action="append", metavar="URL", help="how others reach it; may be repeated")
    about = "the largest package that may be pushed, in MiB (default: 512)"
    parser.add_argument("--largest", type=int, default=512, metavar="MIB", help=about)
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8008, metavar="N", help="default: 8008; 0 takes a free one")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Serve until the process is told to end."""
    try:
        from isorun.serving import app
        from isorun.serving.gate import Reached

        for needed in ("jinja2", "fastapi") if options.registry else ("jinja2",):
            import_module(needed)
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", "server", "isorun serve") from None
    _refuse(options)
    with ExitStack() as stack:
        registry = _registry(options)
        if registry is not None:
            stack.callback(registry.close)
        listener = stack.enter_context(app.bound(options.host, options.port))
        addresses = _addresses(options, listener.getsockname()[1])
        gate = _gate(options, registry, Reached.at(addresses), stack)
        _tell(options, addresses[0], registry)
        app.listen(gate, listener)
    return 0


def _refuse(options: argparse.Namespace) -> None:
    """What would be open to others by mistake."""
    for url in options.url or ():
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query:
            raise UsageError("--url is no address of a server", found=url, allowed="https://isorun.lab.org")
    if not 0 <= options.port <= 65535:
        raise UsageError("--port is out of range", found=str(options.port), allowed="0 to 65535")
    if options.index and not options.registry:
        raise UsageError("--index is for a registry", hint="isorun serve --registry FOLDER --index URL")
    if not 1 <= options.largest <= 4095:
        raise UsageError("--largest is out of range", found=f"{options.largest} MiB", allowed="1 to 4095")
    if not is_this_machine(options.host) and not options.registry:
        raise UsageError(
            "stores and packages are shown to this machine alone",
            found=f"--host {options.host}",
            hint="isorun serve --registry FOLDER is for others, and asks who they are",
        )
    if not is_this_machine(options.host) and not options.url:
        raise UsageError("how others reach the server is not said", hint="--url http://NAME:PORT as they type it")


def _addresses(options: argparse.Namespace, port: int) -> list[str]:
    """How it is reached: as it was told and not otherwise; without a word by the names of this machine."""
    shown = f"[{options.host}]" if ":" in options.host else options.host
    own = [f"http://{name}:{port}" for name in (shown, "localhost", "127.0.0.1")]
    return list(dict.fromkeys(options.url or own))


def _registry(options: argparse.Namespace) -> Registry | None:
    if not options.registry:
        return None
    from isorun.registry.opening import Registry
    from isorun.store import given_place

    registry = Registry(options.registry, given_place(options.index) if options.index else "")
    registry.sweep()
    return registry


def _gate(options: argparse.Namespace, registry: Registry | None, reached: Any, stack: ExitStack) -> Any:
    """The app: pages for everyone who may see them, and the API of a registry. stack: closes what it shows."""
    from isorun.registry import EVERYTHING
    from isorun.serving import app
    from isorun.serving.pages.doors import page_doors
    from isorun.serving.shelves import shelves_of

    if registry is None:
        pages, close = page_doors(shelves_of(options.places))
        stack.callback(close)
        return app.gated([*app.own_doors(), *pages], reached, stranger=EVERYTHING)
    from isorun.serving import api, sessions
    from isorun.serving.registry_shelf import RegistryShelf

    others = shelves_of(options.places) if options.places else []
    pages, close = page_doors([RegistryShelf("registry", registry), *others])
    stack.callback(close)
    doors = [*app.own_doors(), *sessions.doors(registry.people, reached), *pages]
    doors += api.doors(registry, largest=options.largest * 2**20)
    cookie = sessions.cookie_name(reached)
    return app.gated(doors, reached, identify=registry.people.identify, cookie=cookie)


def _tell(options: argparse.Namespace, address: str, registry: Registry | None) -> None:
    """Where it is. The set-up token goes to the terminal, and nowhere else."""
    if options.json:
        cli.print_json({"url": address, "registry": options.registry})
    else:
        what = f": the registry in {registry.folder}" if registry else ""
        cli.show_text(f"{address}{what} (Ctrl-C ends it)\n")
    sys.stdout.flush()  # whoever started it waits for this line
    token = registry.people.set_up_token() if registry else None
    if token is not None:
        said = f"isorun login {address} --set-up USER makes the first user; its token, once, within 24 hours:"
        print(f"{said}\n  {token}", file=sys.stderr, flush=True)
