"""Whose a submission is: what an element reads is carried out as its user, so nobody else may have written it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["is_ours", "open_to_others"]

_READ_FROM: Final = ("submission.json", "environment.json", "prelude.sh", "queued.json")


def is_ours(folder: Path) -> bool:
    """Whether this user made it: others who share the store have submissions of their own, which are theirs."""
    try:
        return folder.lstat().st_uid == os.getuid()
    except OSError:
        return False


def open_to_others(folder: Path, *places: str) -> str:
    """Who else than this user made or may write what is read from a submission; empty where nobody.

    places: of which runs the job is looked at, too. What is not there is not looked at.
    """
    inner = [name for place in places if place for name in (place, f"{place}/job.json")]
    for path in (folder, *(folder / name for name in (*_READ_FROM, *inner))):
        try:
            found = path.lstat()
        except OSError:
            continue
        if found.st_uid != os.getuid():
            return f"{path} belongs to the user {found.st_uid}, and not to {os.getuid()}"
        if stat.S_ISLNK(found.st_mode):
            return f"{path} is a link"
        if found.st_mode & 0o022:
            return f"others may write {path} (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""
