"""torch: seeds for all devices, deterministic kernels, and digests of the weights without a change to the training."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Any

from .. import trouble
from ..recorder import FINAL_WEIGHTS, Recorder
from ..settings import Settings

SEEDING_CALL = "torch.manual_seed"
INITIAL_WEIGHTS = "weights.initial"
MAX_DIGEST_BYTES = 2 * 2**30
_NONDETERMINISTIC = "does not have a deterministic implementation"


def prepare(torch: ModuleType, settings: Settings, recorder: Recorder) -> TorchWatch:
    """Set what the level says; the watch that sees the weights and the seed until the training ends."""
    if settings.seed is not None:
        torch.manual_seed(settings.seed)
    elif settings.warm:
        torch.seed()
    if settings.fixes_kernels:
        _fix_kernels(torch, recorder)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    watch = TorchWatch(torch, recorder)
    if recorder.rank == 0:
        watch.follow_optimizers()
    return watch


def _fix_kernels(torch: ModuleType, recorder: Recorder) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    _note_nondeterministic_operations(recorder)


def _note_nondeterministic_operations(recorder: Recorder) -> None:
    """Operations without a deterministic kernel run all the same, with a warning: keep it in the record."""
    show = warnings.showwarning

    def showwarning(message: Any, *args: Any, **kwargs: Any) -> None:
        text = str(message)
        if _NONDETERMINISTIC in text:
            recorder.note("nondeterministic-operation", text.partition(_NONDETERMINISTIC)[0] + _NONDETERMINISTIC)
        show(message, *args, **kwargs)

    warnings.showwarning = showwarning


class TorchWatch:
    """Digests the weights at the first and after the last optimizer step, and sees whether the seed was set anew.

    The last two optimizers are kept alive until the end, because the model may be gone by then.
    """

    def __init__(self, torch: ModuleType, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._seed = torch.initial_seed()
        self._latest: Any = None
        self._before: Any = None

    def follow_optimizers(self) -> None:
        """Ask torch to tell before each optimizer step; torch older than 2.0 cannot."""
        optimizer = importlib.import_module("torch.optim.optimizer")
        register = getattr(optimizer, "register_optimizer_step_pre_hook", None)
        if register is None:
            self._recorder.note("no-digest", "this torch has no hooks for all optimizers: call isorun.digest")
        else:
            register(self._before_step)

    def set_seed_since(self) -> int | None:
        """The seed that the training gave to torch by itself; None when it gave none, or the one already set."""
        now: int = self._torch.initial_seed()
        return now if now != self._seed else None

    def finish(self) -> None:
        """Digest the final weights, unless the training did."""
        if self._latest is not None and FINAL_WEIGHTS not in self._recorder.digest_names:
            self._digest(FINAL_WEIGHTS, [self._before, self._latest] if self._before is not None else [self._latest])

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if optimizer is self._latest or optimizer is self._before:
            return
        if not self._recorder.is_forked_child:
            trouble.guarded(self._recorder.folder, "digest of the initial weights", self._first_step)(optimizer)

    def _first_step(self, optimizer: Any) -> None:
        self._before, self._latest = self._latest, optimizer
        if INITIAL_WEIGHTS not in self._recorder.digest_names:
            self._digest(INITIAL_WEIGHTS, [optimizer])

    def _digest(self, name: str, optimizers: list[Any]) -> None:
        groups = [[group["params"] for group in optimizer.param_groups] for optimizer in optimizers]
        parameters = [parameter for groups_of_one in groups for group in groups_of_one for parameter in group]
        size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
        if size > MAX_DIGEST_BYTES:
            self._recorder.note("no-digest", f"{name}: {size} bytes of weights are more than {MAX_DIGEST_BYTES}")
        else:
            self._recorder.digest(name, groups if len(groups) > 1 else groups[0])
