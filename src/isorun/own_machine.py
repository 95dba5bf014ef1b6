"""What is the user's own on this machine: his folder of settings, files there that nobody else reads, and its hosts."""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["is_this_machine", "replace_private", "user_folder", "write_private"]


def user_folder() -> Path:
    """Where keys and tokens are kept, ~/.config/isorun; it may not be there yet."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "isorun"


def write_private(path: Path, content: bytes) -> None:
    """Make a file that nobody else can read, which a crash does not lose; FileExistsError where there is one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_private(path: Path, content: bytes) -> None:
    """The same in place of what is there: whoever reads it sees the old or the new, and never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # of a process of this number that was killed
        write_private(part, content)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def is_this_machine(host: str) -> bool:
    """Whether a host, as an address names it, is this machine and no other can be meant."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
