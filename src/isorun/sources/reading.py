"""All sources of one run, as one: what to feed, what to ask at the end, and which of them wins."""

from __future__ import annotations

from pathlib import Path

from isorun.sources.base import AbstractSource, Found, installed_source, merged
from isorun.sources.files import DataFiles, EventFiles
from isorun.sources.lines import LineMetrics
from isorun.study import Sources
from isorun.study.records import Note

__all__ = ["Reading", "read_files"]


class Reading:
    """The sources that a study asks for, for one run.

    A source of another distribution may break its promises: it is then switched off, and a note of the run says so.
    PluginError when one that the study names is not there.
    """

    def __init__(self, sources: Sources) -> None:
        self._lines = LineMetrics(sources)
        self._files: list[AbstractSource] = [DataFiles(sources), EventFiles(sources)]
        self._installed = [_Guarded(name, sources, settings) for name, settings in sources.installed.items()]

    def feed(self, line: str, seconds: float) -> None:
        """Take in one line of output. seconds: since the run began."""
        self._lines.feed(line, seconds)
        for source in self._installed:
            source.feed(line, seconds)

    def finish(self, working_folder: Path, since_unix: float) -> tuple[Found, Found]:
        """What was found in files and by other distributions' sources, which wins, and what in the lines of output."""
        written = [source.finish(working_folder, since_unix) for source in self._files]
        written += [source.finish(working_folder, since_unix) for source in self._installed]
        return merged(*written), self._lines.finish()


def read_files(sources: Sources, working_folder: Path, since_unix: float) -> Found:
    """The metrics in the files and TensorBoard folders of the study that were written since the run began."""
    return merged(*(kind(sources).finish(working_folder, since_unix) for kind in (DataFiles, EventFiles)))


class _Guarded:
    """A source that isorun did not write: no training and no study ends because of it."""

    def __init__(self, name: str, sources: Sources, settings: tuple[str, ...]) -> None:
        self._name = name
        self._failure = ""
        self._source: AbstractSource | None = None
        kind = installed_source(name)
        try:
            self._source = kind(sources, settings)
        except Exception as error:  # whatever another distribution may raise
            self._fail(error)

    def feed(self, line: str, seconds: float) -> None:
        if self._source is None:
            return
        try:
            self._source.feed(line, seconds)
        except Exception as error:  # whatever another distribution may raise
            self._fail(error)

    def finish(self, working_folder: Path, since_unix: float) -> Found:
        try:
            found = self._source.finish(working_folder, since_unix) if self._source else Found()
        except Exception as error:  # whatever another distribution may raise
            self._fail(error)
        if not self._failure:
            return found
        return Found(
            notes=(Note("source-failed", f"the source {self._name!r} failed and was not used: {self._failure}"),)
        )

    def _fail(self, error: Exception) -> None:
        self._failure = f"{type(error).__name__}: {error}"
        self._source = None
