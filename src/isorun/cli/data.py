"""The data sets of the papers: which there are, get them, where they lie.

isorun data list
isorun data get cifar10 mnist
isorun data get cifar10 --from /media/stick
isorun data path cifar10

Downloads come from the authors, go on where they broke off, and are checked before they are kept. The folder is
$ISORUN_DATA, or isorun/data in the user's cache; a machine without a network gets its files with --from.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from isorun import cli
from isorun.cli import duration
from isorun.errors import UsageError, harmless
from isorun.zoo.data.download import DownloadWatcher

if TYPE_CHECKING:
    from isorun.zoo.data.acquisition import Acquired

__all__ = ["declare", "execute"]

_EVERY: Final = 0.2


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "get", "path"), help="what to do (default: list)"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets, as `isorun data list` names them")
    parser.add_argument("--from", dest="source", metavar="FOLDER", help="get: copy files from here, do not download")
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="get: without a byte for so long (default: 30)"
    )
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """List, get or locate."""
    if options.action == "get":
        return _get(options)
    if options.source:
        raise UsageError("--from belongs to get", hint="isorun data get NAME --from FOLDER")
    return _path(options) if options.action == "path" else _list(options)


def _list(options: argparse.Namespace) -> int:
    from isorun.zoo.data.listing import listed, listing_json, listing_view

    entries = listed(options.names)
    if options.json:
        cli.print_json(listing_json(entries))
    else:
        cli.show(listing_view(entries))
    return 0


def _path(options: argparse.Namespace) -> int:
    from isorun.zoo.data.listing import listed, listing_json
    from isorun.zoo.data.presence import data_folder

    if options.json:
        cli.print_json(listing_json(listed(options.names)))
        return 0
    if not options.names:
        print(data_folder())
        return 0
    for entry in listed(options.names):
        print(entry.folder)
        if not entry.at_hand:
            print(f"{entry.dataset.name} is not there yet: isorun data get {entry.dataset.name}", file=sys.stderr)
    return 0


def _get(options: argparse.Namespace) -> int:
    from isorun.zoo.data.acquisition import acquire, with_needs
    from isorun.zoo.data.download import Patience

    if not options.names:
        raise UsageError("get needs the name of a data set", hint="isorun data list")
    if not options.timeout > 0:
        raise UsageError("--timeout needs a positive number of seconds", found=str(options.timeout))
    source = Path(options.source) if options.source else None
    done: list[Acquired] = []
    for name in with_needs(options.names):
        try:
            done.append(
                acquire(
                    name,
                    source=source,
                    watcher=TransferProgress(sys.stderr),
                    patience=Patience(timeout=options.timeout),
                )
            )
        except KeyboardInterrupt:
            print("\nwhat has arrived is kept: the same command goes on from there", file=sys.stderr)
            raise
        if not options.json:
            _tell(done[-1])
    if options.json:
        from isorun.zoo.data.listing import acquired_json

        cli.print_json(acquired_json(done))
    return 0


def _tell(got: Acquired) -> None:
    from isorun.zoo.data.listing import acquired_lines

    for line in acquired_lines(got):
        print(harmless(line))


class TransferProgress(DownloadWatcher):
    """One line, rewritten, on a terminal; elsewhere a line when a file begins."""

    def __init__(self, stream: TextIO) -> None:
        self._lines = cli.ProgressLines(stream)
        self._name = ""
        self._total: int | None = None
        self._first = 0
        self._started = 0.0
        self._shown = 0.0

    def begins(self, path: Path, have: int, total: int | None) -> None:
        """A transfer begins or goes on."""
        self._name, self._total, self._first = path.name, total, have
        self._started = self._shown = time.monotonic()
        resumed = f", going on at {bytes_in_words(have)}" if have else ""
        if not self._lines.live:
            self._lines.say(f"{self._name}: {bytes_in_words(total)}{resumed}")

    def moved(self, size: int) -> None:
        """So many bytes of the file are there."""
        now = time.monotonic()
        if self._lines.live and now - self._shown >= _EVERY:
            self._shown = now
            self._lines.rewrite(self._line(size, now - self._started))

    def ends(self) -> None:
        """The transfer ended, well or not."""
        self._lines.clear()

    def says(self, text: str) -> None:
        """A line of its own."""
        self._lines.say(text)

    def _line(self, size: int, elapsed: float) -> str:
        speed = (size - self._first) / elapsed if elapsed else 0.0
        rate = f"{bytes_in_words(int(speed))}/s"
        if self._total is None:
            return f"{self._name}: {bytes_in_words(size)}, {rate}"
        left = f", {duration((self._total - size) / speed)} left" if speed else ""
        share = 100 * size // self._total if self._total else 100
        return f"{self._name}: {share} % of {bytes_in_words(self._total)}, {rate}{left}"


def bytes_in_words(size: int | None) -> str:
    """A size as people say it."""
    if size is None:
        return "size not known"
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"
