"""A store behind a URL, shelf://FOLDER: it keeps records as a folder does, and says where they came from."""

from pathlib import Path

from isorun.store.folder import FolderStore
from isorun.study.records import Note


class Shelf(FolderStore):
    """The records of one shelf."""

    def notes(self):
        own = (Note("on-a-shelf", "these records lie on a shelf"),) if self.run_ids() else ()
        return (*super().notes(), *own)


def open_shelf(url, *, create=True):
    """The store that a URL names."""
    return Shelf(Path(url.removeprefix("shelf://")), create=create)
