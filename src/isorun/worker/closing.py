"""The worker's last work, when the interpreter shuts down in an orderly way: digests, seeds, environment, end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable

from . import trouble
from .frameworks.pytorch import TorchWatch
from .recorder import Recorder
from .selfseeding import is_users_file
from .values import shortened

_MAX_SCANNED_FILES = 200


class Closer:
    """Runs once, after the training's own exit handlers, in every process that has something to record."""

    def __init__(self, recorder: Recorder) -> None:
        self.torch_watch: TorchWatch | None = None
        self._recorder = recorder
        # Asked now: Python takes `__file__` from the main module before exit handlers run.
        self._script = _main_script()

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
        from . import seedsource  # parsing costs helpers that only start and end too much

        found = [(path, seed) for path in self._sources() for seed in seedsource.find_in_file(path)]
        torch_seed = self.torch_watch.set_seed_since() if self.torch_watch is not None else None
        if torch_seed is not None:
            lines = [f"{path}:{seed.line}" for path, seed in found if seed.call == seedsource.TORCH_CALL]
            self._recorder.seeded(seedsource.TORCH_CALL, shortened(torch_seed), lines[0] if lines else "")
        for path, seed in found:
            if seed.call != seedsource.TORCH_CALL:
                self._recorder.seeded(f"{seed.call} (in source)", seed.value, f"{path}:{seed.line}")

    def _record_environment(self) -> None:
        from . import fingerprint

        effective = fingerprint.effective_environment(self._script)
        effective["sources_sha256"] = fingerprint.sources_digest(self._sources())
        self._recorder.write({"kind": "environment", "t": self._recorder.seconds, "effective": effective})

    def _sources(self) -> list[Path]:
        """The main script and the user's own modules that were imported."""
        files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
        users = [file for file in files | {str(self._script or "")} if file.endswith(".py") and is_users_file(file)]
        return [Path(file) for file in sorted(users)[:_MAX_SCANNED_FILES]]


def _main_script() -> Path | None:
    """The script that Python was started with; None for `-m`, `-c` and programs of the worker's own."""
    script = Path(sys.argv[0]) if getattr(sys, "argv", None) else None
    return script.absolute() if script is not None and script.is_file() and is_users_file(str(script)) else None
