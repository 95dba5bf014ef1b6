"""Looking into a Keras model while `fit` trains it, with one code for all backends.

The steps of a training are compiled, so what is sampled is computed where gradients pass by: in the optimizer's
`apply`, by `keras.ops`, into one small variable that the optimizer carries along and that is read when an epoch ends. A
number in it counts down to the step that is sampled; in all others nothing is computed. Where steps are not compiled
(torch), Python itself counts. Activations are looked at between epochs, on a few examples of what `fit` was given.

Only this model's own `fit` and its optimizer's own `apply` are wrapped, in memory, and what is saved does not have the
variable. Nothing draws random numbers: the training computes the same bits.
"""

from __future__ import annotations

import importlib
import math
import time
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterable, Iterator

from ... import watching

if TYPE_CHECKING:
    from ...watching import Watcher

_EXAMPLES = 32
_INPUTS_LOOKED_AT = 256
# What a sample costs where it cannot be measured, because it is part of a compiled step: measured on a CPU, doubled.
_SECONDS_A_LAYER = 60e-6
_SECONDS_A_NUMBER = 6e-9
_SECONDS_TO_COMPILE = 0.15
_LOOKS = {"softmax": "probabilities", "sigmoid": "sigmoid", "relu": "rectified", "log_softmax": "log-probabilities"}
_LIMITS = {"sigmoid": (0.5, 0.48), "tanh": (0.0, 0.96)}
_NORMALISING = ("Normalization", "Rescaling", "BatchNormalization", "LayerNormalization")
_SQUARES = ("mse", "mean_squared_error", "MSE", "MeanSquaredError")


class KerasProbe:
    """Looks into one model for a watcher, during each of its calls of `fit`."""

    def __init__(self, keras: ModuleType, model: Any, watcher: Watcher) -> None:
        self.keras = keras
        self.watcher = watcher
        self.examples: Any = None
        self._model = weakref.ref(model, lambda _: watcher.leave())
        self._samplers: list[Sampler] = []
        self._told_once = False
        self._steps = 0
        self._look_cost = _SECONDS_TO_COMPILE
        self._cost = 0.0
        watcher.is_told_epochs = True
        self._own_fit = model.__dict__.get("fit")  # of this one model, where somebody gave it one
        model.fit = self._watched_fit

    def halt(self) -> None:
        """The same as to stop: nothing here goes through what is changed."""
        self.stop()

    def stop(self) -> None:
        """Give the model and the optimizers their own functions back."""
        model = self._model()
        if model is not None and model.__dict__.get("fit") == self._watched_fit:
            if self._own_fit is None:
                del model.fit
            else:
                model.fit = self._own_fit
        for sampler in self._samplers:
            sampler.stop()

    def read(self) -> None:
        """Nothing is on its way: `tell` reads at the end of an epoch."""

    def _watched_fit(self, *args: Any, **kwargs: Any) -> Any:
        self.watcher.guarded("looking at what fit is given", self._prepare, args, kwargs)
        model: Any = self._model()
        if self._own_fit is not None:
            return self._own_fit(*args, **kwargs)
        return type(model).fit(model, *args, **kwargs)

    def _prepare(self, args: Any, kwargs: Any) -> None:
        callbacks = kwargs.get("callbacks")
        ours = _callback(self.keras, self)
        if callbacks is None or isinstance(callbacks, (list, tuple)):
            kwargs["callbacks"] = [*(callbacks or ()), ours]
        else:
            callbacks.append(ours)
        given = args[0] if args else kwargs.get("x")
        self.examples = _first_examples(given)

    def begin(self, model: Any) -> None:
        """Training begins: the optimizer is there and no step is compiled yet, or all are compiled anew."""
        sampler = next((one for one in self._samplers if one.optimizer() is model.optimizer), None)
        if sampler is None and model.optimizer is not None:
            sampler = Sampler(self.keras, model, self.watcher)
            self._samplers.append(sampler)
            if model.train_function is not None:
                model.make_train_function(force=True)

    def plan(self, steps: int | None) -> None:
        """An epoch begins: sample one of its steps, if that is paid for."""
        self._steps = steps or 0
        sampler = self._samplers[-1]
        cost = max(sampler.cost, self._cost)
        if self.watcher.pays(cost) or (not self._told_once and self.watcher.pays_once(cost)):
            sampler.ask(1 if not self.watcher.rows else max(1, (steps or 2) // 2))

    def tell(self, model: Any, epoch: int, logs: Any) -> None:
        """An epoch has ended: read what was sampled, look at activations, and mark."""
        began = time.thread_time()
        sampler = self._samplers[-1]
        sample = sampler.answer()
        if sample and not self._told_once:
            self._told_once = True
            sample.update(_about(model))
            if self.examples is not None:
                sample["inputs"] = _spread(model, self.examples)
        if sample and self.examples is not None:
            sample.update(self._activations(model))
        self.watcher.step += self._steps
        if sample:
            self._cost = time.thread_time() - began + sampler.cost  # with what is looked at between epochs
            self.watcher.sampled(sample, self._cost)
        self.watcher.end_epoch(epoch, _named(logs or {}))

    def _activations(self, model: Any) -> dict[str, Any]:
        """By numpy where that can do it; else, if it is paid for, by the backend, which may have to compile."""
        examples = self.examples[:_EXAMPLES].astype("float32")
        plain = list(_outputs_of_dense(self.keras, model, examples))
        if plain or not self.watcher.pays(self._look_cost):
            return _shares(plain)
        began = time.thread_time()
        found = _shares(_outputs(self.keras, model, examples))
        self._look_cost = time.thread_time() - began
        return found


class Sampler:
    """Computes statistics of gradients and weights in one optimizer's `apply`. cost: of one sample, in seconds."""

    def __init__(self, keras: ModuleType, model: Any, watcher: Watcher) -> None:
        self._watcher = watcher
        self.optimizer = weakref.ref(model.optimizer)
        self._ops = keras.ops
        variables = model.trainable_variables
        if not model.optimizer.built:
            model.optimizer.build(variables)
        wide = [place for place, variable in enumerate(variables) if len(variable.shape) > 1]
        self._places = wide or list(range(len(variables)))
        self._sizes = [math.prod(variables[place].shape) for place in self._places]
        self._names = [variables[place].path.rpartition("/")[0] or variables[place].name for place in self._places]
        self._lookups = ["embedding" in name.lower() for name in self._names]
        self._counts_itself = keras.backend.backend() == "torch"
        self._left = 0
        self._is_asked = False
        self._numbers: list[float] = []
        self._variable: Any = None
        self.cost = _SECONDS_A_LAYER * len(self._places) + _SECONDS_A_NUMBER * sum(self._sizes)
        if not self._counts_itself:
            width = 1 + 3 * len(self._places)
            self._variable = model.optimizer.add_variable((width,), dtype="float32", name="isorun_watch")
            _leave_out(model.optimizer, self._variable)
        model.optimizer.apply = self._watched_apply

    def stop(self) -> None:
        """Give the optimizer its own `apply` back; steps that are compiled already go on computing nothing."""
        optimizer = self.optimizer()
        if optimizer is not None and optimizer.__dict__.get("apply") == self._watched_apply:
            del optimizer.apply

    def ask(self, step: int) -> None:
        """Sample this step from now, counted from 1."""
        self._is_asked = True
        if self._variable is None:
            self._left = step
        else:
            self._variable.assign([float(step), *[0.0] * (3 * len(self._places))])

    def answer(self) -> dict[str, Any]:
        """What was sampled since it was asked for; empty where nothing was."""
        if self._is_asked and self._variable is not None:
            left, *numbers = (float(number) for number in self._ops.convert_to_numpy(self._variable))
            self._numbers = numbers if left == 0.0 and any(numbers) else []
        self._is_asked = False
        numbers, self._numbers = self._numbers, []
        if not numbers:
            return {}
        count = len(self._places)
        gradient, weight, zero = numbers[:count], numbers[count : 2 * count], numbers[2 * count :]
        zero = [math.nan if lookup else share for share, lookup in zip(zero, self._lookups)]
        columns = {"gradient": gradient, "weight": weight, "zero": zero}
        joined = watching.grouped(self._names, columns, self._sizes)
        told = {name: joined[name] if name == "layers" else watching.rounded(joined[name]) for name in joined}
        return {**told, "finite": all(map(math.isfinite, [*gradient, *weight]))}

    def _watched_apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        optimizer: Any = self.optimizer()
        grads = list(grads)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        known = optimizer._trainable_variables if trainable_variables is None else trainable_variables  # noqa: SLF001
        if self._variable is not None:
            self._watcher.guarded("sampling a step", self._sample_in_graph, grads, known)
        elif self._left > 0:
            self._left -= 1
            if self._left == 0:
                self._watcher.guarded("sampling a step", self._sample_now, grads, known)
        return type(optimizer).apply(optimizer, grads, trainable_variables)

    def _sample_now(self, grads: Any, variables: Any) -> None:
        began = time.thread_time()
        values = self._ops.stack(self._statistics(grads, variables))
        self._numbers = [float(number) for number in self._ops.convert_to_numpy(values)]
        self.cost = time.thread_time() - began

    def _sample_in_graph(self, grads: Any, variables: Any) -> None:
        ops, state = self._ops, self._ops.convert_to_tensor(self._variable)

        def sampled() -> Any:
            return ops.stack([ops.zeros((), "float32"), *self._statistics(grads, variables)])

        def waiting() -> Any:
            return ops.concatenate([ops.maximum(state[:1] - 1.0, 0.0), state[1:]])

        self._variable.assign(ops.cond(ops.equal(state[0], 1.0), sampled, waiting))

    def _statistics(self, grads: Any, variables: Any) -> list[Any]:
        """L2 norms of gradients, of weights, and shares of zeros in gradients, one after another."""
        ops = self._ops
        found = [grads[place] for place in self._places]
        dense = [None if one is None else ops.cast(_dense(one), "float32") for one in found]
        weights = [ops.cast(ops.convert_to_tensor(variables[place]), "float32") for place in self._places]
        unknown = ops.cast(math.nan, "float32")
        norms = [unknown if one is None else ops.sqrt(ops.sum(ops.square(one))) for one in dense]
        sizes = [ops.sqrt(ops.sum(ops.square(one))) for one in weights]
        zeros = [unknown if one is None else ops.mean(ops.cast(ops.equal(one, 0.0), "float32")) for one in dense]
        return [*norms, *sizes, *zeros]


def _dense(gradient: Any) -> Any:
    """The entries that a gradient has: that of an embedding lists only some rows."""
    return gradient.values if type(gradient).__name__ == "IndexedSlices" else gradient


def _leave_out(optimizer: Any, variable: Any) -> None:
    """What is saved and loaded is the optimizer without our variable, so that anybody can load it."""
    place = next(i for i, one in enumerate(optimizer.variables) if one is variable)

    def save_own_variables(store: Any) -> None:
        kept: dict[str, Any] = {}
        type(optimizer).save_own_variables(optimizer, kept)
        del kept[str(place)]
        for name, value in kept.items():
            store[str(int(name) - (int(name) > place))] = value

    def load_own_variables(store: Any) -> None:
        given = {name: store[name] for name in store.keys()}  # noqa: SIM118  an HDF5 group is no mapping
        moved = {str(int(name) + (int(name) >= place)): value for name, value in given.items()}
        moved[str(place)] = variable.numpy()
        type(optimizer).load_own_variables(optimizer, moved)

    optimizer.save_own_variables, optimizer.load_own_variables = save_own_variables, load_own_variables


def _callback(keras: ModuleType, probe: KerasProbe) -> Any:
    """A callback that is told of epochs only, so that batches cost nothing."""

    class WatchingCallback(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
            probe.watcher.guarded("beginning to train", probe.begin, self.model)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            if not probe.watcher.problem:
                probe.watcher.guarded("planning a sample", probe.plan, self.params.get("steps"))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if not probe.watcher.problem:
                probe.watcher.guarded("reading a sample", probe.tell, self.model, epoch, logs)

    return WatchingCallback()


def _first_examples(given: Any) -> Any:
    """A few examples as an array; None where `fit` was given something that has to be run to look into it."""
    if isinstance(given, dict):
        given = next(iter(given.values()), None)
    elif isinstance(given, (list, tuple)) and given:
        given = given[0]
    if not hasattr(given, "shape") or not hasattr(given, "__getitem__") or len(given.shape) < 2:
        return None
    part = given[:_INPUTS_LOOKED_AT]
    part = part.detach().cpu() if hasattr(part, "detach") else part
    return part.numpy() if hasattr(part, "numpy") else part


def _spread(model: Any, examples: Any) -> dict[str, float]:
    """Mean and spread of the inputs; none where they are numbers of words or normalised by the model itself."""
    kinds = [type(layer).__name__ for layer in getattr(model, "layers", ())]
    if "Embedding" in kinds[:3]:
        return {}
    values = examples.astype("float64")
    numbers = watching.rounded([float(values.mean()), float(values.std()), float(values.min()), float(values.max())])
    normalised = any(kind in _NORMALISING for kind in [kind for kind in kinds if kind != "InputLayer"][:1])
    told = dict(zip(("mean", "spread", "least", "largest"), numbers))
    return {**told, "normalised": 1.0} if normalised else told


def _about(model: Any) -> dict[str, Any]:
    """What the output is and which loss is taken of it, and what the model is built of, as it was declared."""
    told: dict[str, Any] = {"architecture": _architecture(model)}
    last = next(
        (layer for layer in reversed(getattr(model, "layers", ())) if "Dropout" not in type(layer).__name__), None
    )
    if last is not None and isinstance(getattr(model, "loss", None), (str, object)):
        looks = _LOOKS.get(_activation(last), "numbers")
        width = model.output_shape[-1] if isinstance(model.output_shape, tuple) else None
        looks = "constant" if looks == "probabilities" and width == 1 else looks
        told["output"] = {"looks": looks, "width": width, "loss": _loss(model.loss, looks)}
    return told


def _loss(loss: Any, looks: str) -> str:
    """The loss under the names that torch's are told by; empty where it is another."""
    name = str(loss if isinstance(loss, str) else getattr(loss, "name", None) or getattr(loss, "__name__", ""))
    of = "logits" if getattr(loss, "from_logits", False) else "probabilities"
    if "categorical_crossentropy" in name:
        return "cross-entropy-of-logits" if of == "logits" else "log-likelihood-of-probabilities"
    if "binary_crossentropy" in name:
        return "binary-cross-entropy-of-" + of
    return "squares-of-classes" if name in _SQUARES and looks in ("probabilities", "sigmoid") else ""


def _activation(layer: Any) -> str:
    """The name of the function that a layer ends in; empty for none."""
    function = getattr(layer, "activation", None)
    name = getattr(function, "__name__", "") if function is not None else ""
    return {"Softmax": "softmax", "ReLU": "relu"}.get(type(layer).__name__, name)


def _shares(outputs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Shares of dead units and of saturated outputs by layer."""
    found: dict[str, dict[str, float]] = {"dead": {}, "saturated": {}}
    for layer, value in outputs:
        name = _activation(layer)
        if name == "relu" and value.ndim > 1:
            found["dead"][layer.name] = round(float((value.max(axis=tuple(range(value.ndim - 1))) <= 0).mean()), 4)
        elif name in _LIMITS:
            middle, width = _LIMITS[name]
            found["saturated"][layer.name] = round(float((abs(value - middle) > width).mean()), 4)
    return {kind: values for kind, values in found.items() if values}


def _outputs_of_dense(keras: ModuleType, model: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """Each activation of a model that begins with dense layers, by numpy: nothing has to be compiled for it."""
    numpy = importlib.import_module("numpy")
    functions = {
        "relu": lambda given: numpy.maximum(given, 0.0),
        "sigmoid": lambda given: 1.0 / (1.0 + numpy.exp(-numpy.clip(given, -60.0, 60.0))),
        "tanh": numpy.tanh,
        "linear": lambda given: given,
        "": lambda given: given,
    }
    for layer in _in_sequence(model):
        kind = type(layer).__name__
        if kind == "Flatten":
            value = value.reshape(len(value), -1)
        elif kind == "Dense":
            kernel, *bias = (keras.ops.convert_to_numpy(weight) for weight in layer.weights)
            value = value @ kernel + (bias[0] if bias else 0.0)
        elif kind not in ("Activation", "ReLU") and "Dropout" not in kind:
            return
        if _activation(layer) not in functions:
            return
        value = functions[_activation(layer)](value)
        yield layer, value


def _outputs(keras: ModuleType, model: Any, examples: Any) -> Iterator[tuple[Any, Any]]:
    """Each activation of any model whose layers follow one another, by the layers themselves."""
    value = keras.ops.convert_to_tensor(examples)
    for layer in _in_sequence(model):
        value = keras.ops.stop_gradient(layer(value, training=False))
        if _activation(layer) in ("relu", *_LIMITS):
            yield layer, keras.ops.convert_to_numpy(value)


def _in_sequence(model: Any) -> list[Any]:
    """The layers of a model in which each follows the one before; none where they branch or remember."""
    layers = [layer for layer in getattr(model, "layers", ()) if type(layer).__name__ != "InputLayer"]
    follows = type(model).__name__ == "Sequential" and not any(getattr(layer, "stateful", False) for layer in layers)
    return layers[: watching.MAX_LAYERS] if follows else []


def _architecture(model: Any) -> str:
    names = [type(layer).__name__ for layer in getattr(model, "layers", ())]
    if any("Attention" in name for name in names):
        return "attention"
    if any(name.startswith(("Depthwise", "Separable")) for name in names):
        return "inverted-bottleneck" if "Add" in names and "DepthwiseConv2D" in names else "depthwise"
    return "residual" if "Add" in names else "plain"


def _named(logs: Any) -> dict[str, Any]:
    """The metrics of an epoch, accuracies by one name whatever kind they are."""
    named = dict(logs)
    for name, value in logs.items():
        if name.endswith(("accuracy", "acc")):
            named.setdefault("val_accuracy" if name.startswith("val_") else "accuracy", value)
    return named
