"""Keras 3 on any backend: a model that was built and compiled, and a KerasTuner hypermodel around the user's.

What was chosen is done to the model by public means: attributes of Keras' own layers, a clone where layers are added
or replaced, another optimizer by compiling anew, callbacks and fits in steps for what changes on the way. A layer of
the user's own is never touched. Where everything is kept the model is the one that was built.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import keras
from keras import layers

from isorun.errors import InputError
from isorun.repair.expansion import OFFERS, STEPS, Offering, TrainingCourse, choice_of
from isorun.repair.searches import OFFERED, is_offered

try:
    from keras_tuner import HyperModel as _HyperModel
except ModuleNotFoundError:  # Keras can be searched by Optuna, too
    _HyperModel = object

__all__ = ["ExpandedHyperModel", "ExpandedModel", "KerasSubject", "expand_built", "expand_model"]

_WEIGHTED: Final = (
    *(layers.Dense, layers.EinsumDense, layers.Conv1D, layers.Conv2D, layers.Conv3D),
    *(layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose),
)
_RECTIFYING: Final = (layers.ReLU, layers.LeakyReLU, layers.ELU)
_HIDDEN: Final = frozenset(
    (
        *(
            "relu",
            "relu6",
            "leaky_relu",
            "elu",
            "selu",
            "celu",
            "gelu",
            "silu",
            "swish",
            "mish",
            "softplus",
            "softsign",
        ),
        *("tanh", "sigmoid", "hard_silu", "hard_sigmoid"),
    )
)
_GATES: Final = frozenset(("sigmoid", "hard_sigmoid"))
_NORMS: Final = tuple(
    getattr(layers, name)
    for name in (
        *("BatchNormalization", "LayerNormalization", "GroupNormalization", "UnitNormalization", "RMSNormalization"),
        "SpectralNormalization",
    )
    if hasattr(layers, name)
)
_INITIALISERS: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {
        "he_uniform": keras.initializers.HeUniform,
        "lecun_uniform": keras.initializers.LecunUniform,
        "glorot_uniform": keras.initializers.GlorotUniform,
    }
)
_OPTIMIZERS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "sgd": keras.optimizers.SGD,
        "adam": keras.optimizers.Adam,
        "adamw": keras.optimizers.AdamW,
        "nadam": keras.optimizers.Nadam,
    }
)
_EXCHANGEABLE: Final = frozenset(
    ("SGD", "Adam", "AdamW", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Lion", "Lamb", "Ftrl")
)
"""By name: on some backends an optimizer is of a class of the same name that is made for the backend."""
_CARRIED: Final = ("learning_rate", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum")
_OF_OPTIMIZER: Final = (
    *("optimizer", "learning_rate", "momentum", "weight_decay", "clip", "end_learning_rate", "fine_tuning"),
)
_REBUILT: Final = ("normalise", "standardise")


def _leaves(model: Any) -> list[Any]:
    """The layers of a model and of those within it, in order, each once."""
    found: dict[int, Any] = {}
    for layer in model.layers:
        inner = _leaves(layer) if hasattr(layer, "layers") else [layer]
        found.update((id(one), one) for one in inner)
    return list(found.values())


def _is_own(layer: Any) -> bool:
    return not type(layer).__module__.startswith("keras.")


def _activation(layer: Any) -> str:
    """The name of the activation that a layer ends with or is; empty where it has none between layers."""
    if isinstance(layer, _RECTIFYING):
        return "relu"
    if isinstance(layer, (*_WEIGHTED, layers.Activation)) and not _is_own(layer):
        name = getattr(layer.activation, "__name__", "")
        return name if name in _HIDDEN else ""
    return ""


def _is_plain(layer: Any) -> bool:
    """Whether a layer that is an activation has no settings of its own."""
    if not isinstance(layer, _RECTIFYING):
        return True
    return type(layer) is layers.ReLU and layer.max_value is None and not (layer.negative_slope or layer.threshold)


def _initialiser(layer: Any) -> str:
    """The choice that a layer was drawn with, where its bias begins with zeros, as it would be drawn anew."""
    bias = getattr(layer, "bias_initializer", None)
    if layer.use_bias and not isinstance(bias, keras.initializers.Zeros):
        return ""
    return next((word for word, kind in _INITIALISERS.items() if type(layer.kernel_initializer) is kind), "")


class KerasSubject:
    """A model as the user's function built it, and what of it can be changed."""

    def __init__(self, model: Any, pretrained: Any) -> None:
        self.model = model
        self.leaves = _leaves(model)
        self._pretrained = pretrained
        trained = [layer for layer in self.leaves if layer.weights or isinstance(layer, _WEIGHTED)]
        self.trained = trained
        outputs = set(getattr(model, "output_names", ())) | {layer.name for layer in trained[-1:]}
        end = self.leaves.index(trained[-1]) if trained else 0
        hidden = [one for one in self.leaves[:end] if _activation(one) and one.name not in outputs]
        if not all(_activation(layer) in _GATES for layer in hidden):
            hidden = [layer for layer in hidden if _activation(layer) not in _GATES]
        self.hidden = hidden
        self._why_not_cloned = self._closed()
        self._why_not_compiled = _why_not_compiled(model)

    def _closed(self) -> str:
        if _is_own(self.model):
            return f"{type(self.model).__name__} is a model of the user's own, which cannot be cloned"
        own = next((type(layer).__name__ for layer in self.leaves if _is_own(layer)), "")
        return f"{own} is a layer of the user's own, which cannot be cloned" if own else ""

    @property
    def optimizer(self) -> Any:
        """The optimizer, below what scales losses."""
        return _unscaled(self.model.optimizer)

    def lacks(self, name: str, chosen: Mapping[str, str]) -> str:
        """Why this cannot be changed."""
        if name in _REBUILT and self._why_not_cloned:
            return self._why_not_cloned
        if name in (*_OF_OPTIMIZER, *_REBUILT) and self._why_not_compiled:
            return self._why_not_compiled
        own = getattr(self, f"_{name}_lacks", None)
        return own(chosen) if own is not None else ""

    def has(self, name: str, chosen: Mapping[str, str]) -> str:
        """The choice that is what the user built. Another optimizer may come with other settings."""
        if name == "initialiser":  # those that are drawn anew are drawn as they were
            words = {_initialiser(layer) for layer in _drawable(self.leaves)}
            return words.pop() if len(words) == 1 else ""
        if name == "activation":
            words = {_activation(one) if _is_plain(one) else "" for one in self.hidden}
            return words.pop() if len(words) == 1 and words <= set(OFFERS[name]) else ""
        if name == "optimizer":
            word = type(self.optimizer).__name__.casefold()
            return word if word in _OPTIMIZERS else ""
        if name == "learning_rate" or (name in ("momentum", "weight_decay") and "optimizer" not in chosen):
            return choice_of(name, float(self.optimizer.get_config().get(name) or 0.0))
        return ""

    def _pretrained_lacks(self, _: Mapping[str, str]) -> str:
        if self._pretrained is None:
            return "no pretrained weights were given: pretrained=…"
        return "the model is built with its pretrained weights" if self._pretrained is True else ""

    def _initialiser_lacks(self, chosen: Mapping[str, str]) -> str:
        if self._pretrained is True or "pretrained" in chosen:
            return "it would undo the pretrained weights"
        return "" if _drawable(self.leaves) else "no dense or convolutional layer's weights can be drawn anew"

    def _activation_lacks(self, _: Mapping[str, str]) -> str:
        if not self.hidden:
            return "no activation between its layers is one that Keras' own layers hold"
        needs_clone = any(isinstance(layer, _RECTIFYING) for layer in self.hidden)
        return (self._why_not_cloned or self._why_not_compiled) if needs_clone else ""

    def _normalise_lacks(self, _: Mapping[str, str]) -> str:
        if any(isinstance(layer, _NORMS) for layer in self.leaves):
            return "the model normalises already"
        return "" if self.hidden else "no activation between its layers is one that Keras' own layers hold"

    def _standardise_lacks(self, _: Mapping[str, str]) -> str:
        inputs = getattr(self.model, "inputs", None)
        if not inputs or len(inputs) != 1 or None in inputs[0].shape[-1:]:
            return "the model has not one input of known shape"
        if not inputs[0].dtype.startswith(("float", "bfloat")):
            return f"its input is {inputs[0].dtype}"
        first = next((one for one in self.leaves if not isinstance(one, layers.InputLayer)), None)
        is_done = isinstance(first, (layers.Normalization, layers.Rescaling, *_NORMS))
        return "its inputs are normalised already" if is_done else ""

    def _optimizer_lacks(self, _: Mapping[str, str]) -> str:
        kind = type(self.optimizer).__name__
        is_known = kind in _EXCHANGEABLE and not _is_own(self.optimizer)
        return "" if is_known else f"{kind} may do what no other optimizer does"

    def _learning_rate_lacks(self, _: Mapping[str, str]) -> str:
        scheduled = isinstance(self.optimizer.get_config()["learning_rate"], Mapping)
        return "the optimizer has a schedule of its own" if scheduled else ""

    def _momentum_lacks(self, chosen: Mapping[str, str]) -> str:
        kind = chosen.get("optimizer", "sgd" if type(self.optimizer).__name__ == "SGD" else "")
        return "" if kind == "sgd" else "only SGD has a momentum to choose"

    def _clip_lacks(self, _: Mapping[str, str]) -> str:
        config = self.optimizer.get_config()
        clips = any(config.get(key) for key in ("clipnorm", "global_clipnorm", "clipvalue"))
        return "the optimizer clips already" if clips else ""

    _end_learning_rate_lacks = _learning_rate_lacks

    def _fine_tuning_lacks(self, chosen: Mapping[str, str]) -> str:
        if self._pretrained is not True and "pretrained" not in chosen:
            return "the weights are not pretrained"
        return "the model has one layer only" if len(self.trained) < 2 else self._learning_rate_lacks(chosen)


def _unscaled(optimizer: Any) -> Any:
    return optimizer.inner_optimizer if isinstance(optimizer, keras.optimizers.LossScaleOptimizer) else optimizer


def _why_not_compiled(model: Any) -> str:
    """Why a model cannot be compiled anew with another optimizer; empty where it can."""
    if not model.compiled:
        return "the model is not compiled where it is built"
    try:
        with _known_loss(model):
            keras.saving.deserialize_keras_object(model.get_compile_config())
    except Exception as error:  # whatever a loss or metric of the user's own raises when it is written down and read
        return f"what it was compiled with cannot be written down: {str(error).partition(chr(10))[0][:100]}"
    return ""


def _known_loss(model: Any) -> contextlib.AbstractContextManager[Any]:
    """A scope in which a loss function of the user's own is known by its name."""
    name = getattr(model.loss, "__name__", "")
    found: contextlib.AbstractContextManager[Any] = keras.saving.custom_object_scope({name: model.loss} if name else {})
    return found


def _drawable(leaves: list[Any]) -> list[Any]:
    return [layer for layer in leaves if isinstance(layer, _WEIGHTED) and not _is_own(layer) and layer.trainable]


def _changed(subject: KerasSubject, chosen: Mapping[str, str], pretrained: Any) -> Any:
    """The model as it was chosen to be: the same where nothing has to be added to it, else a clone of it."""
    if "pretrained" in chosen:
        _load(subject.model, pretrained)
    for layer in _drawable(subject.leaves) if "initialiser" in chosen else ():
        _draw(layer, chosen["initialiser"])
    if "activation" in chosen:
        for layer in subject.hidden:
            if not isinstance(layer, _RECTIFYING):
                layer.activation = keras.activations.get(chosen["activation"])
    model = subject.model
    replaces = "activation" in chosen and any(isinstance(layer, _RECTIFYING) for layer in subject.hidden)
    if replaces or chosen.keys() & {*_REBUILT}:
        model = _rebuilt(subject, chosen)
    settings = chosen.keys() & {"optimizer", "learning_rate", "momentum", "weight_decay", "clip"}
    if settings:
        _compile(model, subject.model, _changed_optimizer(subject.optimizer, chosen))
    elif model is not subject.model:
        _compile(model, subject.model, subject.optimizer)
    return model


def _load(model: Any, pretrained: Any) -> None:
    if callable(pretrained):
        pretrained(model)
    else:
        model.load_weights(pretrained)


def _draw(layer: Any, initialiser: str) -> None:
    """Draw a layer's weights anew, now or when it is built. An initialiser that is shared would draw the same twice."""
    layer.kernel_initializer = _INITIALISERS[initialiser]()
    if layer.built:
        layer.kernel.assign(layer.kernel_initializer(layer.kernel.shape, dtype=layer.kernel.dtype))
        if layer.bias is not None:
            layer.bias.assign(keras.ops.zeros(layer.bias.shape, dtype=layer.bias.dtype))


def _rebuilt(subject: KerasSubject, chosen: Mapping[str, str]) -> Any:
    """A clone with other activations and norms among its layers, which has the weights that the model had."""
    model, hidden, pairs = subject.model, {id(layer) for layer in subject.hidden}, []

    def cloned(layer: Any) -> Any:
        new = type(layer).from_config(layer.get_config())
        pairs.append((layer, new))
        return _replaced(layer, new, chosen) if id(layer) in hidden else new

    clone = keras.models.clone_model(model, clone_function=cloned)
    for layer, new in pairs:
        if layer.built and new.built and layer.weights:
            new.set_weights(layer.get_weights())
    if "standardise" not in chosen:
        return clone
    given = model.inputs[0]
    inputs = keras.Input(batch_shape=given.shape, dtype=given.dtype)
    first = layers.BatchNormalization(center=False, scale=False, momentum=0.9, name="isorun_inputs")
    return keras.Model(inputs, clone(first(inputs)), name=model.name)


def _replaced(layer: Any, new: Any, chosen: Mapping[str, str]) -> Any:
    """What comes in place of a layer with an activation."""
    if isinstance(layer, _RECTIFYING) and "activation" in chosen:
        new = layers.Activation(chosen["activation"], name=layer.name)
    if "normalise" not in chosen:
        return new
    if not isinstance(layer, _WEIGHTED):
        return keras.Sequential([layers.BatchNormalization(), new], name=f"{layer.name}_normalised")
    activation, new.activation = new.activation, keras.activations.linear
    parts = [new, layers.BatchNormalization(), layers.Activation(activation)]
    return keras.Sequential(parts, name=f"{layer.name}_normalised")


def _changed_optimizer(optimizer: Any, chosen: Mapping[str, str]) -> Any:
    kind, config = type(optimizer), optimizer.get_config()
    wanted = _OPTIMIZERS.get(chosen.get("optimizer", ""), kind)
    if wanted.__name__ != kind.__name__:
        carried = {key: config[key] for key in _CARRIED if config.get(key) is not None}
        decay = {"weight_decay": config["weight_decay"]} if config.get("weight_decay") else {}
        kind, config = wanted, {**carried, **decay}
    if "learning_rate" in chosen:
        config["learning_rate"] = float(chosen["learning_rate"])
    if "momentum" in chosen:
        config["momentum"] = float(chosen["momentum"])
        config["nesterov"] = bool(config.get("nesterov")) and config["momentum"] > 0
    if "weight_decay" in chosen:
        none = 0.0 if issubclass(kind, keras.optimizers.AdamW) else None  # AdamW takes no other word for it
        config["weight_decay"] = float(chosen["weight_decay"]) or none
    if "clip" in chosen:
        config["global_clipnorm"] = float(chosen["clip"])
    return kind.from_config(config)


def _compile(model: Any, as_was: Any, optimizer: Any) -> None:
    """Compile a model as another one was, with this optimizer."""
    config = {**as_was.get_compile_config(), "optimizer": keras.saving.serialize_keras_object(optimizer)}
    with _known_loss(as_was):
        model.compile_from_config(config)


@dataclass(frozen=True, slots=True)
class ExpandedModel:
    """A model as a trial has it: the one that was given, or a clone of it where layers were added or replaced.

    offered: what was asked for, with the answers. left_out: what was not, and why. as_built: which of the choices are
    what the user built.
    """

    model: Any
    offered: Mapping[str, str]
    left_out: Mapping[str, str]
    as_built: Mapping[str, str]


def expand_model(model: Any, ask: Callable[[str, tuple[str, ...]], str], own: Iterable[str], pretrained: Any) -> Any:
    """Offer what applies to a model that was built and compiled, and change it as was chosen. own: the user's space."""
    if not (pretrained is None or pretrained is True or callable(pretrained) or isinstance(pretrained, str | Path)):
        allowed = "a file of weights, a function that loads them into a model, or True: it holds them already"
        raise InputError("pretrained is not understood", found=repr(type(pretrained)), allowed=allowed)
    offering = Offering(ask, own)
    subject = KerasSubject(model, pretrained)
    chosen = offering.choose(subject)
    if chosen:
        model = _changed(subject, chosen, pretrained)
        course = TrainingCourse.chosen(chosen)
        if course is not None:
            model.fit = SteppedFit(model, course)
    return ExpandedModel(model, offering.offered, offering.left_out, offering.as_built)


def expand_built(hp: Any, model: Any, pretrained: Any = None) -> ExpandedModel:
    """The same for a model of KerasTuner: what is offered is declared on its hyperparameters."""
    own = [one.name for one in hp.space if not is_offered(one.name)]
    found: ExpandedModel = expand_model(model, lambda name, choices: _declared(hp, name, choices), own, pretrained)
    return found


def _declared(hp: Any, name: str, choices: tuple[str, ...]) -> str:
    """A choice that the trial has or is given now; those of fine-tuning belong to it."""
    if name.removeprefix(OFFERED) not in STEPS:
        return str(hp.Choice(name, list(choices), default=choices[0]))
    with hp.conditional_scope(f"{OFFERED}fine_tuning", ["two-step", "three-step"]):
        return str(hp.Choice(name, list(choices), default=choices[0]))


class ExpandedHyperModel(_HyperModel):  # type: ignore[misc]  # mypy does not look into KerasTuner
    """See `isorun.repair.expansion.hypermodel`. offered, left_out: as in the model that was built last."""

    def __init__(self, hypermodel: Any, pretrained: Any = None) -> None:
        self._is_hypermodel = isinstance(hypermodel, _HyperModel)
        if not self._is_hypermodel and not callable(hypermodel):
            allowed = "a keras_tuner.HyperModel, or a function that builds a model from hyperparameters"
            raise InputError("a hypermodel is expanded", found=repr(type(hypermodel)), allowed=allowed)
        super().__init__(getattr(hypermodel, "name", None), tunable=getattr(hypermodel, "tunable", True))
        self.hypermodel = hypermodel
        self.pretrained = pretrained
        self.offered: Mapping[str, str] = {}
        self.left_out: Mapping[str, str] = {}

    def declare_hyperparameters(self, hp: Any) -> None:
        """As the user's hypermodel does."""
        if self._is_hypermodel:
            self.hypermodel.declare_hyperparameters(hp)

    def build(self, hp: Any) -> Any:
        """The user's model; what is offered on it is declared, and what was chosen is changed."""
        model = self.hypermodel.build(hp) if self._is_hypermodel else self.hypermodel(hp)
        if not isinstance(model, keras.Model):
            return model
        expanded = expand_built(hp, model, self.pretrained)
        self.offered, self.left_out = expanded.offered, expanded.left_out
        return expanded.model

    def fit(self, hp: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        """As the user's hypermodel does."""
        if self._is_hypermodel:
            return self.hypermodel.fit(hp, model, *args, **kwargs)
        return super().fit(hp, model, *args, **kwargs)


class SteppedFit:
    """The `fit` of one model whose learning rate, or what of it is frozen, changes on the way: a fit for each step.

    What is frozen can change only where a model is compiled anew, so the optimizer begins afresh with every step.
    """

    def __init__(self, model: Any, course: TrainingCourse) -> None:
        self._model = weakref.ref(model)
        self._own = type(model).fit
        self._course = course

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the model's own, with all histories as one."""
        model: Any = self._model()
        course = self._course
        results: list[Any] = []
        told = dict(inspect.signature(self._own).bind(model, *args, **kwargs).arguments)
        total, begin = told.get("epochs", 1), told.get("initial_epoch", 0)
        compiled, frozen = model.get_compile_config(), Frozen(model, course)
        for number, start in enumerate(course.starts):
            first = max(begin, round(start * total))
            end = round(course.starts[number + 1] * total) if number + 1 < len(course.starts) else total
            if end <= first and (results or number + 1 < len(course.starts)):
                continue
            if len(course.starts) > 1:
                frozen.set(start)
                with _known_loss(model):
                    model.compile_from_config(compiled)
            callbacks = list(_scaling(course, total, told.get("callbacks")))
            results.append(self._own(**{**told, "initial_epoch": first, "epochs": end, "callbacks": callbacks}))
        return _joined(results)


class Frozen:
    """Freezes the layers that a step of the fine-tuning leaves alone, and nothing that the user froze."""

    def __init__(self, model: Any, course: TrainingCourse) -> None:
        self._course = course
        self._body = [layer for layer in _leaves(model) if layer.weights][:-1]
        self._trained = [layer for layer in self._body if layer.trainable]

    def set(self, progress: float) -> None:
        """Freeze and thaw for the step that this progress is in; the model must be compiled anew."""
        count = round(len(self._body) * self._course.frozen_share(progress))
        frozen = {id(layer) for layer in self._body[:count]}
        if self._course.freezes_norms:
            frozen |= {id(layer) for layer in self._body if isinstance(layer, _NORMS)}
        for layer in self._trained:
            layer.trainable = id(layer) not in frozen


def _scaling(course: TrainingCourse, total: int, callbacks: Any) -> Iterator[Any]:
    """The user's callbacks, between two that scale the learning rate during an epoch: they see the user's own."""
    rates: list[float] = []

    def restore(*_: Any) -> None:
        if rates:
            begins.model.optimizer.learning_rate = rates.pop()

    def scale(epoch: int, *_: Any) -> None:
        rate = float(keras.ops.convert_to_numpy(begins.model.optimizer.learning_rate))
        rates[:] = [rate]
        begins.model.optimizer.learning_rate = rate * course.rate(epoch / total)

    begins = keras.callbacks.LambdaCallback(on_epoch_begin=scale)
    yield keras.callbacks.LambdaCallback(on_epoch_end=restore)
    if isinstance(callbacks, keras.callbacks.CallbackList):
        yield from callbacks.callbacks
    elif callbacks is not None:
        yield from callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    yield begins


def _joined(results: list[Any]) -> Any:
    """The histories of all steps as one."""
    last = results[-1]
    names = dict.fromkeys(name for one in results for name in one.history)
    last.history = {name: [value for one in results for value in one.history.get(name, ())] for name in names}
    last.epoch = [epoch for one in results for epoch in one.epoch]
    return last
