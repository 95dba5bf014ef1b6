"""What can be changed beyond the user's space: parameters that isorun offers on a model and its optimizer.

An offered parameter is named `isorun.<meaning>`, and its first choice is "keep": the model as the user built it. What
does not apply to a model, or what the user's own space has under any name, is not offered, and why is said. The files
beside this one know how to look at and to change a framework's models; here is what is offered, and when.

Choices are texts, spelled as the shipped priors spell values, because KerasTuner knows no choice between a text and a
number. Engines want the same choices in every trial, so they do not depend on the model.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from isorun.errors import InputError, MissingExtra
from isorun.repair.actions import meaning
from isorun.repair.searches import KEEP, OFFERED, is_offered

__all__ = [
    "AS_BUILT",
    "OFFERS",
    "Offering",
    "Subject",
    "TrainingCourse",
    "choice_of",
    "expand",
    "hypermodel",
    "lightning",
]

OFFERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pretrained": ("given",),
        "initialiser": ("he_uniform", "lecun_uniform", "glorot_uniform"),
        "activation": ("selu", "relu", "tanh", "leaky_relu", "elu"),
        "normalise": ("true",),
        "standardise": ("true",),
        "optimizer": ("sgd", "adam", "adamw", "nadam"),
        "learning_rate": ("1e-1", "1e-2", "1e-3", "1e-4", "2e-5", "1e-5"),
        "momentum": ("0", "0.1", "0.5", "0.9", "0.99"),
        "weight_decay": ("0", "1e-3", "5e-3", "1e-2", "5e-2", "1e-1"),
        "clip": ("1", "1e-1"),
        "end_learning_rate": ("1e-1", "1e-2", "0"),
        "fine_tuning": ("two-step", "three-step"),
        "step_ratio": ("0.1", "0.2", "0.3", "0.4", "0.5"),
        "second_learning_rate": ("1", "1e-1", "1e-2"),
        "freeze": ("all", "none", "batch-norm"),
    }
)
"""What may be offered, in the order in which it is asked for and applied, and the choices besides "keep"."""
LEFT_OUT: Final = "isorun:left_out"
"""The attribute of an Optuna trial that says what was not offered in it, and why."""
AS_BUILT: Final = "isorun:as_built"
"""The attribute of an Optuna trial that says which choices are what the user built, so that they change nothing."""
STEPS: Final = MappingProxyType({"step_ratio": "0.2", "second_learning_rate": "1e-1", "freeze": "all"})
"""What belongs to fine-tuning alone, and what "keep" means there."""


class Subject(Protocol):
    """A model with its optimizer, as a framework's file looks at it."""

    def lacks(self, name: str, chosen: Mapping[str, str]) -> str:
        """Why this cannot be changed, given what was chosen before it; empty where it can."""

    def has(self, name: str, chosen: Mapping[str, str]) -> str:
        """The choice that is what the user built, given what was chosen before it; empty where none is."""


def choice_of(name: str, number: float | None) -> str:
    """The choice of an offered parameter that is this number; empty where none is. Keras has rates as float32."""
    if number is None:
        return ""
    return next((one for one in OFFERS[name] if math.isclose(float(one), number, rel_tol=1e-6)), "")


@dataclass(slots=True)
class Offering:
    """What is offered in one trial. offered: what was asked for, and the answer. left_out: what was not, and why.

    as_built: of what was offered, the choice that is no other than "keep".
    """

    ask: Callable[[str, tuple[str, ...]], str]
    own: Iterable[str] = ()
    offered: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    as_built: dict[str, str] = field(default_factory=dict)

    def choose(self, subject: Subject) -> dict[str, str]:
        """Ask for everything that applies; the answers that are not "keep", by short name."""
        known = {meaning(name): name for name in self.own if not is_offered(name)}
        chosen: dict[str, str] = {}
        for name, choices in OFFERS.items():
            if name in STEPS and "fine_tuning" not in chosen:
                continue
            own = known.get(meaning(name))
            why = f"the space has it: {own}" if own else subject.lacks(name, chosen)
            if why:
                self.left_out[OFFERED + name] = why
                continue
            has = subject.has(name, chosen)
            if has:
                self.as_built[OFFERED + name] = has
            answer = self.ask(OFFERED + name, (KEEP, *choices))
            self.offered[OFFERED + name] = answer
            if answer != KEEP:
                chosen[name] = answer
        return chosen


@dataclass(frozen=True, slots=True)
class TrainingCourse:
    """What changes on the way of a training, told by its progress between 0 and 1. starts: where steps begin."""

    end_share: float = 1.0
    starts: tuple[float, ...] = (0.0,)
    second_rate: float = 1.0
    freeze: str = "none"

    @classmethod
    def chosen(cls, chosen: Mapping[str, str]) -> TrainingCourse | None:
        """The course that a trial's choices ask for; None where nothing changes on the way."""
        if not chosen.keys() & {"end_learning_rate", "fine_tuning"}:
            return None
        end = float(chosen.get("end_learning_rate", 1))
        if "fine_tuning" not in chosen:
            return cls(end)
        told = {**STEPS, **chosen}
        ratio = float(told["step_ratio"])
        starts = (0.0, ratio) if told["fine_tuning"] == "two-step" else (0.0, ratio, (1 + ratio) / 2)
        return cls(end, starts, float(told["second_learning_rate"]), told["freeze"])

    def rate(self, progress: float) -> float:
        """The learning rate as a share of the user's: half a cosine to its end, and less from the second step on."""
        half = 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        return (self.end_share + (1 - self.end_share) * half) * (self.second_rate if self.step(progress) else 1.0)

    def step(self, progress: float) -> int:
        """Which step of the fine-tuning it is, from 0 on."""
        return sum(progress >= start for start in self.starts) - 1

    def frozen_share(self, progress: float) -> float:
        """How much of the pretrained part is frozen, from its input on: all, half before the last of three, none."""
        last = len(self.starts) - 1
        return 0.0 if self.freeze == "none" or not last else 1 - self.step(progress) / last

    @property
    def freezes_norms(self) -> bool:
        """Whether normalisation layers stay frozen to the end."""
        return self.freeze == "batch-norm"


def expand(
    trial: Any,
    model: Any,
    optimizer: Any = None,
    *,
    epochs: int | None = None,
    steps: int | None = None,
    pretrained: Any = None,
) -> Any:
    """Offer what your space does not hold, in an Optuna objective: one line before the training.

    A torch model and its optimizer are changed in place, so your loop stays as it is. Of a Keras model that is compiled
    go on with `expanded.model`: a clone where layers were added. Where everything is kept nothing is touched, and no
    random number is drawn. epochs, or steps of the optimizer: how long a torch training will be, without which nothing
    is offered that changes on the way; the end of an epoch is told by `expanded.epoch_ended()`, `isorun.log(epoch=…)`,
    or the model being evaluated. pretrained: weights (a state dict or file, or a function that loads them into the
    model), which makes loading them a choice; True where the model already holds such weights.
    """
    if not hasattr(trial, "suggest_categorical"):
        allowed = "the trial that Optuna gives to the objective"
        raise InputError("isorun.repair.expand asks a trial", found=repr(type(trial)), allowed=allowed)
    lengths: dict[str, Any] = {"epochs": epochs, "steps": steps}
    for name, value in lengths.items():
        if value is not None and (type(value) is not int or value < 1):  # a bool is an int, too
            raise InputError(f"{name} is not understood", found=repr(value), allowed="a whole number from 1 on")
    expanded = _expanded(trial, model, optimizer, lengths, pretrained)
    if expanded.left_out and hasattr(trial, "set_user_attr"):
        trial.set_user_attr(LEFT_OUT, dict(expanded.left_out))
    if expanded.as_built and hasattr(trial, "set_user_attr"):
        trial.set_user_attr(AS_BUILT, dict(expanded.as_built))
    return expanded


def _expanded(trial: Any, model: Any, optimizer: Any, lengths: Mapping[str, int | None], pretrained: Any) -> Any:
    keras, torch = sys.modules.get("keras"), sys.modules.get("torch")

    def ask(name: str, choices: tuple[str, ...]) -> str:
        return str(trial.suggest_categorical(name, choices))

    if keras is not None and isinstance(model, keras.Model):  # on torch it is one of torch's modules, too
        from isorun.repair.expansion.keras import expand_model  # noqa: PLC0415 - an extra

        return expand_model(model, ask, _own_parameters(trial), pretrained)
    if torch is not None and isinstance(model, torch.nn.Module):
        from isorun.repair.expansion.torch import expand_module  # noqa: PLC0415 - an extra

        offering = Offering(ask, _own_parameters(trial))
        return expand_module(offering, model, optimizer, **lengths, pretrained=pretrained)
    allowed = "a torch.nn.Module, or a keras.Model"
    raise InputError("isorun.repair.expand changes a model", found=repr(type(model)), allowed=allowed)


def _own_parameters(trial: Any) -> set[str]:
    """The names in the user's space: those of this trial so far, and of all trials before it."""
    own = set(getattr(trial, "params", {}))
    study = getattr(trial, "study", None)
    if study is not None:
        own.update(*(one.params for one in study.get_trials(deepcopy=False)))
    return own


def lightning(trial: Any, *, pretrained: Any = None) -> Any:
    """The same as a Lightning callback: `Trainer(callbacks=[isorun.repair.lightning(trial)])`.

    It looks at the module when its training begins; `callback.expanded` then is what `expand` gives.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtra("torch", "torch", "expanding a Lightning module")
    from isorun.repair.expansion.torch import lightning_callback  # noqa: PLC0415 - as above

    return lightning_callback(lambda module, optimizer, **known: expand(trial, module, optimizer, **known), pretrained)


def hypermodel(hypermodel: Any, *, pretrained: Any = None) -> Any:
    """A KerasTuner hypermodel around yours (or around your build function), which offers what its space does not hold.

    pretrained: weights (a file, or a function that loads them into the model), which makes loading them a choice; True
    where the model already holds such weights.
    """
    if importlib.util.find_spec("keras_tuner") is None:
        raise MissingExtra("keras_tuner", "keras-tuner", "expanding a KerasTuner search")
    from isorun.repair.expansion.keras import ExpandedHyperModel  # noqa: PLC0415 - an extra

    if isinstance(hypermodel, ExpandedHyperModel):
        return hypermodel
    return ExpandedHyperModel(hypermodel, pretrained)
