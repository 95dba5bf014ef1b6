"""Torch: a model and an optimizer looked at, and changed in place before the training.

Activations that are modules are replaced, weights drawn anew, settings of the optimizer's groups set; an optimizer
that is to be another takes that one's class and groups and stays the same object.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import torch
from torch import nn
from torch.nn.modules import lazy
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.utils import parametrize

from isorun.errors import InputError, MissingExtra
from isorun.repair.expansion import Offering, choice_of
from isorun.repair.expansion.torch_steps import NORMS, Expanded, trained_modules

__all__ = ["TorchSubject", "expand_module", "lightning_callback"]

_MADE: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {"selu": nn.SELU, "relu": nn.ReLU, "tanh": nn.Tanh, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU}
)
_RECTIFIERS: Final = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish),
    nn.Softplus,
)
_GATES: Final = (nn.Sigmoid, nn.Hardsigmoid)
_SQUASHERS: Final = (*_GATES, nn.Tanh, nn.Hardtanh, nn.Softsign)
_ACTIVATIONS: Final = (*_RECTIFIERS, *_SQUASHERS)
_CALLED: Final = frozenset(
    ("relu", "relu_", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "hardswish", "softplus")
)
_CALLED_SQUASHERS: Final = frozenset(("sigmoid", "tanh"))
_LAYERS: Final = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_WEIGHTED: Final = (*_LAYERS, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_BATCH_NORMS: Final = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d}
_OPTIMIZERS: Final[Mapping[str, Any]] = MappingProxyType(
    {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "nadam": torch.optim.NAdam}
)
_EXCHANGEABLE: Final = (
    *_OPTIMIZERS.values(),
    *(torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.Adamax, torch.optim.RAdam),
)
_OF_MODEL: Final = ("pretrained", "initialiser", "activation", "normalise", "standardise", "fine_tuning")
_OF_OPTIMIZER: Final = (
    *("optimizer", "learning_rate", "momentum", "weight_decay", "clip", "end_learning_rate", "fine_tuning"),
)


class Place(NamedTuple):
    """Where a module hangs in a model. before: what comes before it in a Sequential, else None."""

    parent: Any
    key: str
    module: Any
    before: Any


def _places(model: Any) -> Iterator[Place]:
    """All modules below a model where they hang, one that hangs in several places once for each, in order."""
    latest: dict[int, Any] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        latest.pop(id(module), None)
        if name:
            parent = model.get_submodule(name.rpartition(".")[0])
            before = latest.get(id(parent)) if isinstance(parent, nn.Sequential) else None
            latest[id(parent)] = module
            yield Place(parent, name.rpartition(".")[2], module, before)


class TorchSubject:
    """A model, unwrapped, and what of it can be changed."""

    def __init__(self, model: Any, optimizer: Any, *, is_timed: bool, pretrained: Any) -> None:
        self.model = _unwrapped(model)
        self.optimizer = optimizer
        self._is_timed = is_timed
        self._pretrained = pretrained
        self._wrapped = _why_closed(model, self.model)
        self.activations, self._why_no_activation = _hidden_activations(self.model)
        self._has_norm = any(isinstance(module, NORMS) for module in self.model.modules())
        trained = trained_modules(self.model) or [None]
        self.first, self.head = trained[0], trained[-1]

    @property
    def has_pretrained(self) -> bool:
        """Whether the model as it was given holds pretrained weights."""
        return self._pretrained is True

    def lacks(self, name: str, chosen: Mapping[str, str]) -> str:
        """Why this cannot be changed."""
        if name in _OF_MODEL and self._wrapped:
            return self._wrapped
        if name in _OF_OPTIMIZER and (why := self._why_not_steps(name)):
            return why
        own = getattr(self, f"_{name}_lacks", None)
        return own(chosen) if own is not None else ""

    def has(self, name: str, chosen: Mapping[str, str]) -> str:
        """The choice that is what the user built. Another optimizer may come with other settings."""
        if name == "optimizer":
            return next((word for word, kind in _OPTIMIZERS.items() if type(self.optimizer) is kind), "")
        if name == "activation":
            words = {_word(place.module) for place in self.activations}
            return words.pop() if len(words) == 1 else ""
        if name == "learning_rate":
            return choice_of(name, max(float(group["lr"]) for group in self.optimizer.param_groups))
        if name in ("momentum", "weight_decay") and "optimizer" not in chosen:
            found = {float(group[name]) for group in self.optimizer.param_groups if name in group}
            return choice_of(name, found.pop()) if len(found) == 1 else ""
        return ""

    def _why_not_steps(self, name: str) -> str:
        if self.optimizer is None:
            return "no optimizer was given"
        kind = type(self.optimizer).__name__
        if not isinstance(self.optimizer, torch.optim.Optimizer) or isinstance(self.optimizer, torch.optim.LBFGS):
            return f"{kind} is no optimizer that goes step by step along the gradient"
        groups = self.optimizer.param_groups
        if name in ("learning_rate", "end_learning_rate") and any("initial_lr" in group for group in groups):
            return "the optimizer has a scheduler of its own"
        if name != "momentum" and any(torch.is_tensor(group.get("lr")) or "lr" not in group for group in groups):
            return "the optimizer's learning rate is no plain number"
        return ""

    def _pretrained_lacks(self, _: Mapping[str, str]) -> str:
        if self._pretrained is None:
            return "no pretrained weights were given: pretrained=…"
        return "the model was given with its pretrained weights" if self.has_pretrained else ""

    def _initialiser_lacks(self, chosen: Mapping[str, str]) -> str:
        if self.has_pretrained or "pretrained" in chosen:
            return "it would undo the pretrained weights"
        if any(map(_is_lazy, self.model.modules())):
            return "the model has lazy layers, which have no weights before it is first called"
        return "" if _drawable(self.model) else "no linear or convolutional layer's weights can be drawn anew"

    def _activation_lacks(self, _: Mapping[str, str]) -> str:
        return self._why_no_activation

    def _normalise_lacks(self, _: Mapping[str, str]) -> str:
        if self._has_norm:
            return "the model normalises already"
        if not _normalisable(self.activations):
            return "there is no Sequential in which a layer is followed by an activation"
        return "" if self.optimizer is None or _groups_hold(self.optimizer, self.activations) else "not all is trained"

    def _standardise_lacks(self, _: Mapping[str, str]) -> str:
        if not isinstance(self.first, _LAYERS) or _is_lazy(self.first):
            found = "nothing" if self.first is None else type(self.first).__name__
            return f"its inputs go into {found} first: not into a linear or convolutional layer"
        return ""

    def _optimizer_lacks(self, _: Mapping[str, str]) -> str:
        optimizer = self.optimizer
        if type(optimizer) not in _EXCHANGEABLE:
            return f"{type(optimizer).__name__} may do what no other optimizer does"
        if "step" in vars(optimizer):
            return "the optimizer has a scheduler, or something else that took over its step"
        if optimizer.state:
            return "the optimizer has made steps already"
        special = ("fused", "capturable", "differentiable", "maximize")
        set_ = [key for key in special if any(group.get(key) for group in optimizer.param_groups)]
        return f"the optimizer is asked to be {', '.join(set_)}" if set_ else ""

    def _momentum_lacks(self, chosen: Mapping[str, str]) -> str:
        kind = chosen.get("optimizer", "sgd" if type(self.optimizer) is torch.optim.SGD else "")
        if kind != "sgd":
            return "only SGD has a momentum to choose"
        cycled = any("max_momentum" in group for group in self.optimizer.param_groups)
        return "a scheduler cycles the momentum" if cycled else ""

    def _weight_decay_lacks(self, chosen: Mapping[str, str]) -> str:
        missing = not all("weight_decay" in group for group in self.optimizer.param_groups)
        return "the optimizer has no weight decay" if missing and "optimizer" not in chosen else ""

    def _clip_lacks(self, chosen: Mapping[str, str]) -> str:
        fused = any(group.get("fused") for group in self.optimizer.param_groups) and "optimizer" not in chosen
        return "a fused optimizer may be given scaled gradients" if fused else ""

    def _end_learning_rate_lacks(self, _: Mapping[str, str]) -> str:
        return "" if self._is_timed else "how long the training will be is not told: epochs=… or steps=…"

    def _fine_tuning_lacks(self, chosen: Mapping[str, str]) -> str:
        if not self.has_pretrained and "pretrained" not in chosen:
            return "the weights are not pretrained"
        if self.head is self.first:
            return "the model has one layer only"
        return self._end_learning_rate_lacks(chosen)


def _unwrapped(model: Any) -> Any:
    """The user's own module below what compiles or replicates it."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, DataParallel | DistributedDataParallel):
            inner = model.module
        if inner is None:
            return model
        model = inner


def _why_closed(model: Any, inner: Any) -> str:
    """Why the modules of a model cannot be changed at all."""
    if isinstance(model, DistributedDataParallel) or any(hasattr(one, "device_mesh") for one in inner.parameters()):
        return "the model is distributed over processes: expand it before that"
    return "a scripted model cannot be changed" if isinstance(inner, torch.jit.ScriptModule) else ""


def _word(activation: Any) -> str:
    """The choice that an activation is, with its settings as they are made here; empty where it is none."""
    made = ((word, kind()) for word, kind in _MADE.items() if type(activation) is kind)
    settings = ("negative_slope", "alpha")
    alike = (word for word, one in made if all(getattr(one, k, 0) == getattr(activation, k, 0) for k in settings))
    return next(alike, "")


def _is_lazy(module: Any) -> bool:
    return isinstance(module, lazy.LazyModuleMixin) and module.has_uninitialized_params()


def _hidden_activations(model: Any) -> tuple[list[Place], str]:
    """The modules that are activations between layers, or why there are none that can be replaced.

    What comes after the last layer may be the model's output, and a sigmoid among others is a gate: they stay. A module
    that is registered last and rectifies is taken for one that the forward pass calls between layers.
    """
    places = list(_places(model))
    layers = [number for number, place in enumerate(places) if next(place.module.parameters(), None) is not None]
    last = max(layers, default=-1)
    hidden = [
        place
        for number, place in enumerate(places)
        if isinstance(place.module, _ACTIVATIONS)
        and (number < last or not (isinstance(place.module, _SQUASHERS) or isinstance(place.parent, nn.Sequential)))
    ]
    if not all(isinstance(place.module, _GATES) for place in hidden):
        hidden = [place for place in hidden if not isinstance(place.module, _GATES)]
    called = _called_activations(model, _CALLED if hidden else _CALLED | _CALLED_SQUASHERS)
    if called:
        return [], f"an activation that a forward pass calls cannot be replaced: {called}"
    return hidden, "" if hidden else "no activation between its layers is a module"


def _called_activations(model: Any, names: frozenset[str]) -> str:
    """The activation functions that the user's own forward passes name, and where."""
    for module in model.modules():
        code = getattr(inspect.getattr_static(type(module), "forward", None), "__code__", None)
        if code is None or type(module).__module__.startswith("torch.nn."):
            continue
        found = (names & set(code.co_names)) - {name for name, _ in module.named_children()}
        if found:
            return f"{', '.join(sorted(found))} in {type(module).__name__}"
    return ""


def _drawable(model: Any) -> list[Any]:
    """The layers whose weights may be drawn anew, those that share one once; what is tied to an embedding stays."""
    tied = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    found: dict[int, Any] = {}
    for module in model.modules():
        if not isinstance(module, _WEIGHTED) or parametrize.is_parametrized(module) or hasattr(module, "weight_g"):
            continue
        if id(module.weight) not in tied and module.weight.requires_grad:
            found.setdefault(id(module.weight), module)
    return list(found.values())


def _normalisable(activations: list[Place]) -> list[Place]:
    """The activations that follow a layer of known width in a Sequential."""
    return [place for place in activations if isinstance(place.before, _LAYERS) and not _is_lazy(place.before)]


def _groups_hold(optimizer: Any, activations: list[Place]) -> bool:
    held = {id(one) for group in optimizer.param_groups for one in group["params"]}
    return all(id(place.before.weight) in held for place in _normalisable(activations))


class NormalisedActivation(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """A batch norm in front of an activation. A batch of one, which has no spread, is normalised as in evaluation."""

    def __init__(self, layer: Any, activation: Any) -> None:
        super().__init__()
        self.is_last = isinstance(layer, nn.Linear)
        width = layer.out_features if self.is_last else layer.out_channels
        kind = next((one for of, one in _BATCH_NORMS.items() if isinstance(layer, of)), nn.BatchNorm1d)
        self.norm = kind(width, device=layer.weight.device, dtype=layer.weight.dtype)
        self.activation = activation

    def forward(self, inputs: Any) -> Any:
        """Features are last behind a linear layer, however many dimensions come before them."""
        norm, flat = self.norm, inputs.flatten(0, -2) if self.is_last else inputs
        if self.training and flat.numel() == norm.num_features:
            told = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
            return self.activation(nn.functional.batch_norm(flat, *told, eps=norm.eps).reshape(inputs.shape))
        return self.activation(norm(flat).reshape(inputs.shape))


class InputStandardiser(nn.Module):  # type: ignore[misc]  # as above
    """What goes into the first layer, to mean 0 and spread 1, feature by feature, by all training batches so far.

    A feature that hardly varies is divided by a tenth of the common spread, so that one odd value stays a number.
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        is_linear = isinstance(layer, nn.Linear)
        self.axis = -1 if is_linear else -1 - len(layer.kernel_size)
        width, device = layer.in_features if is_linear else layer.in_channels, layer.weight.device
        self.register_buffer("count", torch.zeros((), device=device))
        self.register_buffer("mean", torch.zeros(width, device=device))
        self.register_buffer("square", torch.ones(width, device=device))

    def forward(self, inputs: Any) -> Any:
        """Before the first training batch they are left as they are."""
        shape = [1] * inputs.ndim
        shape[self.axis] = -1
        if self.training:
            self._learn(inputs.detach().float())
        common = (self.square.mean() - self.mean.mean() ** 2).clamp_min(1e-12)
        spread = (self.square - self.mean**2).clamp_min(0.01 * common).sqrt()
        return ((inputs - self.mean.reshape(shape)) / spread.reshape(shape)).to(inputs.dtype)

    @torch.no_grad()  # type: ignore[untyped-decorator]  # as above
    def _learn(self, inputs: Any) -> None:
        others = [place for place in range(inputs.ndim) if place != self.axis % inputs.ndim]
        seen = inputs.numel() // len(self.mean)
        self.count += seen
        self.mean += (inputs.mean(others) - self.mean) * (seen / self.count)
        self.square += ((inputs**2).mean(others) - self.square) * (seen / self.count)


def _standardised(layer: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A hook of the first layer."""
    return (layer.isorun_inputs(args[0]), *args[1:])


def _change_model(subject: TorchSubject, chosen: Mapping[str, str], pretrained: Any) -> None:
    model = subject.model
    if "pretrained" in chosen:
        _load(model, pretrained)
    if "initialiser" in chosen:
        _draw(model, chosen["initialiser"])
    if "activation" in chosen:
        made: dict[int, Any] = {}
        for place in subject.activations:
            new = made.setdefault(id(place.module), _MADE[chosen["activation"]]())
            setattr(place.parent, place.key, new.train(place.module.training))
        subject.activations = [one._replace(module=made[id(one.module)]) for one in subject.activations]
    if "normalise" in chosen:
        for place in _normalisable(subject.activations):
            new = NormalisedActivation(place.before, place.module).train(place.module.training)
            setattr(place.parent, place.key, new)
            if subject.optimizer is not None:
                _train_with(subject.optimizer, place.before.weight, new.norm)
    if "standardise" in chosen:
        subject.first.isorun_inputs = InputStandardiser(subject.first).train(model.training)
        subject.first.register_forward_pre_hook(_standardised)


def _load(model: Any, pretrained: Any) -> None:
    """The weights that the user gave; those of another shape, such as a head for other classes, stay as they are."""
    if callable(pretrained):
        pretrained(model)
        return
    own = model.state_dict()
    fitting = {name: one for name, one in pretrained.items() if name in own and own[name].shape == one.shape}
    if not fitting:
        found = f"weights named {', '.join(list(pretrained)[:3])}, …" if pretrained else "no weights"
        raise InputError("none of the pretrained weights fits the model", found=found, allowed=", ".join(list(own)[:3]))
    model.load_state_dict(fitting, strict=False)


def _draw(model: Any, initialiser: str) -> None:
    for layer in _drawable(model):
        if initialiser == "glorot_uniform":
            nn.init.xavier_uniform_(layer.weight)
        else:
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu" if initialiser == "he_uniform" else "linear")
        if layer.bias is not None and layer.bias.requires_grad:
            nn.init.zeros_(layer.bias)


def _train_with(optimizer: Any, weight: Any, norm: Any) -> None:
    """Let the optimizer train a new layer as it trains the one before it."""
    for group in optimizer.param_groups:
        if any(one is weight for one in group["params"]):
            group["params"] += list(norm.parameters())
            if "param_names" in group:  # groups that know their parameters by name
                group["param_names"] += [f"isorun.norm.{id(norm)}.{name}" for name, _ in norm.named_parameters()]
            return


def _change_optimizer(optimizer: Any, chosen: Mapping[str, str]) -> None:
    if "optimizer" in chosen:
        _become(optimizer, _OPTIMIZERS[chosen["optimizer"]])
    groups = optimizer.param_groups
    if "learning_rate" in chosen:
        largest = max(group["lr"] for group in groups)
        for group in groups:  # groups keep their rates in proportion
            share = group["lr"] / largest if largest else 1.0
            group["lr"] = float(chosen["learning_rate"]) * share
    if "momentum" in chosen:
        for group in groups:
            group["momentum"] = float(chosen["momentum"])
            group["nesterov"] = bool(group.get("nesterov")) and group["momentum"] > 0
    if "weight_decay" in chosen:
        decaying = [group for group in groups if group["weight_decay"]] or groups  # what was spared stays spared
        for group in decaying:
            group["weight_decay"] = float(chosen["weight_decay"])


def _become(optimizer: Any, kind: Any) -> None:
    """Make an optimizer one of another kind: the same object, whose hooks, loop and scheduler to come know it."""
    if type(optimizer) is kind:
        return
    old = optimizer.param_groups
    made = kind([{"params": group["params"], "lr": group["lr"]} for group in old])
    for group, before in zip(made.param_groups, old, strict=True):
        group["weight_decay"] = before.get("weight_decay") or group["weight_decay"]
        group.update({key: value for key, value in before.items() if key not in (*optimizer.defaults, *group)})
    optimizer.__class__ = kind
    optimizer.__setstate__(made.__getstate__())


def expand_module(
    offering: Offering, model: Any, optimizer: Any, *, epochs: int | None, steps: int | None, pretrained: Any
) -> Expanded:
    """See `isorun.repair.expand`."""
    if not (pretrained is None or pretrained is True or callable(pretrained) or isinstance(pretrained, Mapping)):
        allowed = "a state dict, a function that loads weights into a model, or True: the model holds them already"
        raise InputError("pretrained is not understood", found=repr(type(pretrained)), allowed=allowed)
    is_timed = epochs is not None or steps is not None
    subject = TorchSubject(model, optimizer, is_timed=is_timed, pretrained=pretrained)
    chosen = offering.choose(subject)
    expanded = Expanded(model, subject.model, optimizer, offering)
    _change_model(subject, chosen, pretrained)
    if optimizer is not None and chosen:
        _change_optimizer(optimizer, chosen)
        expanded.follow(chosen, epochs, steps)
    return expanded


def lightning_callback(expand: Callable[..., Expanded], pretrained: Any) -> Any:
    """See `isorun.repair.expansion.lightning`."""
    name = next((name for name in ("lightning.pytorch", "pytorch_lightning") if name in sys.modules), None)
    if name is None:
        raise MissingExtra("lightning", "torch", "expanding a Lightning module")
    base = sys.modules[name].Callback

    class ExpandingCallback(base):  # type: ignore[misc, valid-type]  # a class of a package that may not be there
        """Expands the module when its training begins, with its first optimizer."""

        expanded: Expanded | None = None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            known = trainer.max_epochs is not None and trainer.max_epochs > 0
            steps = trainer.max_steps if trainer.max_steps > 0 else None
            epochs = trainer.max_epochs if known and steps is None else None
            one = trainer.optimizers[0] if len(trainer.optimizers) == 1 else None
            self.expanded = expand(pl_module, one, epochs=epochs, steps=steps, pretrained=pretrained)

        def on_train_epoch_end(self, *_: Any) -> None:
            assert self.expanded is not None
            self.expanded.epoch_ended()

    return ExpandingCallback()
