"""The worker's last work, when the interpreter shuts down in an orderly way: digests, seeds, environment, end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from . import trouble
from .frameworks.pytorch import SEEDING_CALL as TORCH_CALL
from .frameworks.pytorch import TorchWatch
from .recorder import Recorder
from .userfiles import main_script, started_in, users_sources

if TYPE_CHECKING:
    from ast import Module

    from .seedsource import SourceSeed
    from .takeover import SeedTaker

_MAX_SCANNED_FILES = 200
_DRAWN_FROM = 2**32


class Closer:
    """Runs once, after the training's own exit handlers, in every process that has something to record."""

    def __init__(self, recorder: Recorder) -> None:
        self.torch_watch: TorchWatch | None = None
        self.taker: SeedTaker | None = None
        self._recorder = recorder
        # Asked now: Python takes `__file__` from the main module before exit handlers run.
        self._script = main_script()
        self._folder = started_in()
        self._seed_option = ""

    def close(self) -> None:
        """Record what can only be known at the end. `closing` says how long this took: it is not the training's."""
        if self._recorder.is_forked_child:
            return
        ended = self._recorder.seconds
        if self.torch_watch is not None:
            self._attempt("digest of the final weights", self.torch_watch.finish)
        if not self._recorder.is_writing:
            return
        self._attempt("search for seeds in the source", self._record_seeds)
        self._attempt("fingerprint of the environment", self._record_environment)
        closing = round(self._recorder.seconds - ended, 6)
        self._recorder.finish({"kind": "end", "t": ended, "closing": closing})

    def _attempt(self, doing: str, work: Callable[[], None]) -> None:
        trouble.guarded(self._recorder.folder, doing, work)()

    def _record_seeds(self) -> None:
        from . import seedoption, seedsource  # parsing costs helpers that only start and end too much

        trees = {path: tree for path in self._sources() for tree in [seedsource.parsed(path)] if tree is not None}
        self._seed_option = seedoption.seed_option(self._script_first(trees))
        found = [(path, seed) for path, tree in trees.items() for seed in seedsource.find_in_tree(tree)]
        if self.torch_watch is not None and self.taker is None:
            self._record_torch_seed(found, self.torch_watch.set_seed_since())
        for path, seed in found:
            if seed.call != TORCH_CALL and not self._was_taken(path, seed):
                self._record_source_seed(path, seed)

    def _record_torch_seed(self, found: list[tuple[Path, SourceSeed]], seed: int | None) -> None:
        """Tell the seed that torch ended with; one as wide as `torch.seed()` draws them counts if it was written."""
        constants = [(path, item) for path, item in found if item.call == TORCH_CALL]
        if seed is not None and (seed < _DRAWN_FROM or any(item.value == str(seed) for _, item in constants)):
            where = f"{constants[0][0]}:{constants[0][1].line}" if constants else ""
            self._recorder.seeded(TORCH_CALL, str(seed), where)

    def _was_taken(self, path: Path, seed: SourceSeed) -> bool:
        places = {f"{path}:{line}" for line in range(seed.line, seed.last_line + 1)}
        passed_on = seed.is_setting and not seed.is_native
        return self.taker is not None and self.taker.took(seed.value, places, passed_on=passed_on)

    def _record_source_seed(self, path: Path, seed: SourceSeed) -> None:
        place = f"{path}:{seed.line}"
        self._recorder.seeded(f"{seed.call} (in source)", seed.value, place)
        if self.taker is not None and seed.is_setting:
            told = f"{seed.call} {seed.value} at {place}"
            self._recorder.note("seed-not-taken", f"{told} was not taken over: no generator was seen to get it")

    def _script_first(self, trees: dict[Path, Module]) -> list[Module]:
        return [trees[path] for path in sorted(trees, key=lambda path: path != self._script)]

    def _record_environment(self) -> None:
        from . import fingerprint

        effective = fingerprint.effective_environment(self._script)
        effective["sources_sha256"] = fingerprint.sources_digest(self._sources())
        if self._seed_option:
            effective["seed_option"] = self._seed_option
        self._recorder.write({"kind": "environment", "t": self._recorder.seconds, "effective": effective})

    def _sources(self) -> list[Path]:
        return users_sources(sys.modules, self._script, self._folder, os.environ)[:_MAX_SCANNED_FILES]
