"""Torch: what changes on the way of a training that was expanded, by hooks on the steps of its optimizer.

The learning rate is another one only during a step, so that the user's scheduler sees its own. Nothing is hooked where
nothing changes on the way.
"""

from __future__ import annotations

import importlib
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from torch import nn
from torch.nn.utils import clip_grad_norm_

from isorun.repair.expansion import Offering, TrainingCourse

__all__ = ["NORMS", "Expanded", "trained_modules"]

NORMS: Final = (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.LayerNorm, nn.GroupNorm),
    *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.LocalResponseNorm),
    *((nn.RMSNorm,) if hasattr(nn, "RMSNorm") else ()),
)
_RANKS: Final = ("", "evaluation", "log", "user")
"""Who tells that an epoch has ended, the surest last."""


def trained_modules(model: Any) -> list[Any]:
    """The modules with parameters of their own, as the user registered them: the last one is the head."""
    return [module for module in model.modules() if next(module.parameters(recurse=False), None) is not None]


class Expanded:
    """A model and an optimizer as a trial has them. offered: what was asked for, with the answers. left_out: why not.

    Changes on the way follow the optimizer's steps where their number is known; else epochs, as they are told by
    `epoch_ended`, by `isorun.log(epoch=…)`, or, where nobody tells, by the model being evaluated between steps.
    """

    def __init__(self, given: Any, model: Any, optimizer: Any, offering: Offering) -> None:
        self.model = given
        self.optimizer = optimizer
        self.offered = offering.offered
        self.left_out = offering.left_out
        self.as_built = offering.as_built
        self._unwrapped = model
        self._course: TrainingCourse | None = None
        self._clip = 0.0
        self._total = 0
        self._done = 0
        self._by_steps = False
        self._told_by = ""
        self._latest_epoch: Any = None
        self._was_evaluated = False
        self._rates: list[float] = []
        self._frozen: list[Any] = []
        self._evaluated_norms: list[tuple[Any, Any]] = []

    def __iter__(self) -> Iterator[Any]:
        """`model, optimizer = expand(…)`: the same objects that were given."""
        return iter((self.model, self.optimizer))

    @property
    def progress(self) -> float:
        """How far the training is, from 0 to 1."""
        return min(self._done / self._total, 1.0) if self._total else 0.0

    def epoch_ended(self) -> None:
        """An epoch has ended. Once this was called nothing else tells epochs."""
        self._end_epoch("user")

    def follow(self, chosen: Mapping[str, str], epochs: int | None, steps: int | None) -> None:
        """Do what is to be done on the way: hooks on the optimizer, none where there is nothing to do."""
        self._course = TrainingCourse.chosen(chosen)
        self._clip = float(chosen.get("clip", 0))
        if self._course is None and not self._clip:
            return
        self._by_steps, self._total = steps is not None, steps or epochs or 0
        self.optimizer.register_step_pre_hook(self._before_step)
        if self._course is not None:
            self.optimizer.register_step_post_hook(self._after_step)
            self._freeze()
            if not self._by_steps:
                self._unwrapped.register_forward_pre_hook(self._see_evaluation)
                _follow_log(self)

    def _before_step(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._was_evaluated:
            self._end_epoch("evaluation")
        if self._course is not None:
            rate = self._course.rate(self.progress)
            self._rates = [group["lr"] for group in self.optimizer.param_groups]
            for group in self.optimizer.param_groups:
                group["lr"] *= rate
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not self._clip:
            return None
        if closure is None:
            self._clip_gradients()
            return None
        return (args[0], self._clipping(closure)), {}

    def _clipping(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def computed() -> Any:
            loss = closure()
            self._clip_gradients()
            return loss

        return computed

    def _after_step(self, *_: Any) -> None:
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=False):
            group["lr"] = rate
        if self._by_steps:
            self._advance()

    def _clip_gradients(self) -> None:
        clip_grad_norm_([one for group in self.optimizer.param_groups for one in group["params"]], self._clip)

    def _see_evaluation(self, module: Any, _: Any) -> None:
        self._was_evaluated = self._was_evaluated or (not module.training and bool(self._rates))

    def logged(self, epoch: Any) -> None:
        """`isorun.log` was told an epoch: each counts once, however often it is told."""
        if epoch != self._latest_epoch:
            self._latest_epoch = epoch
            self._end_epoch("log")

    def _end_epoch(self, told_by: str) -> None:
        self._was_evaluated = False
        if self._course is None or self._by_steps or _RANKS.index(told_by) < _RANKS.index(self._told_by):
            return
        if self._told_by not in ("", told_by):  # what was counted until now was the same epochs, told otherwise
            self._done = max(self._done - 1, 0)
        self._told_by = told_by
        self._advance()

    def _advance(self) -> None:
        before = self._course.step(self.progress) if self._course is not None else 0
        self._done += 1
        if self._course is not None and self._course.step(self.progress) != before:
            self._freeze()

    def _freeze(self) -> None:
        """Freeze what the present step of the fine-tuning leaves alone, and nothing that the user froze."""
        assert self._course is not None
        for one in self._frozen:
            one.requires_grad_(True)
        for norm, hook in self._evaluated_norms:
            hook.remove()
            norm.train(self._unwrapped.training)
        self._frozen, self._evaluated_norms = [], []
        if len(self._course.starts) == 1:
            return
        *body, head = trained_modules(self._unwrapped)
        kept = {id(one) for one in head.parameters(recurse=False)}  # what the head is tied to goes on with it
        frozen = body[: round(len(body) * self._course.frozen_share(self.progress))]
        norms = [one for one in body if isinstance(one, NORMS) and (self._course.freezes_norms or one in frozen)]
        for module in {*frozen, *(norms if self._course.freezes_norms else ())}:
            own = [one for one in module.parameters(recurse=False) if one.requires_grad and id(one) not in kept]
            self._frozen += [one.requires_grad_(False) for one in own]
        self._evaluated_norms = [(one, one.register_forward_pre_hook(_evaluated)) for one in norms]


def _evaluated(module: Any, _: Any) -> None:
    """A hook: the module does as in evaluation, whatever `model.train()` said."""
    module.eval()


def _follow_log(expanded: Expanded) -> None:
    """Be told the epochs that `isorun.log` is told, as long as the training is there."""
    worker = sys.modules.get("isorun_worker.api") or importlib.import_module("isorun.worker.api")
    worker.follow(weakref.WeakMethod(expanded.logged))
