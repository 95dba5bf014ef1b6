"""Looking into a torch model: gradients, weights, activations, and which loss the gradient of its output is that of.

The one hook that stays is on the optimizers' step. For a step that is sampled, hooks are put on the model and a mode
that sees activation functions is on during its forward pass; both are gone when it ends. They only read: the training
computes the same bits. Nothing is kept alive: a model that is dropped takes its watcher with it.
"""

from __future__ import annotations

import functools
import importlib
import math
import time
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple

from ... import watching

if TYPE_CHECKING:
    from ...watching import Watcher

_EXAMPLES = 64
_LEAST_EXAMPLES = 8
_NUMBERS_LOOKED_AT = 65_536
_MAX_UPDATE_NUMBERS = 20_000_000
_OUTPUTS_LOOKED_AT = 3
_RECTIFIERS = frozenset(("relu", "relu_", "relu6"))
_SQUASHERS = {"sigmoid": (0.5, 0.48), "sigmoid_": (0.5, 0.48), "tanh": (0.0, 0.96), "tanh_": (0.0, 0.96)}
# What a tensor that came out of these is, and what merely changes its shape or type.
_LOOKS = {
    "SoftmaxBackward0": "probabilities",
    "LogSoftmaxBackward0": "log-probabilities",
    "SigmoidBackward0": "sigmoid",
    "ReluBackward0": "rectified",
}
_VIEWS = ("View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Alias", "Permute", "Transpose", "UnsafeView")


class Layer(NamedTuple):
    """The weights of one module; is_lookup: most of its rows have no gradient in any step, by what it is for."""

    name: str
    weights: list[Any]
    is_lookup: bool


class TorchProbe:
    """Looks into one model for a watcher."""

    def __init__(self, torch: ModuleType, model: Any, watcher: Watcher) -> None:
        self._torch = torch
        self._model = weakref.ref(model, lambda _: watcher.stop())
        self._watcher = watcher
        self._known: dict[int, bool] = {}
        self._latest = 0
        self._hooks: list[Any] = []
        self._forward: Forward | None = None
        self._inputs: dict[str, float] = {}
        self._outputs = 0
        self._architecture = ""
        self._spent = 0.0
        self._forward_missed = 0
        self._restore_epoch_end = _tell_epochs(model, watcher)
        optimizer = importlib.import_module("torch.optim.optimizer")
        self._step_hook = optimizer.register_optimizer_step_pre_hook(self._before_step)
        watcher.guarded("looking into the model", self._arm)

    def stop(self) -> None:
        """Take everything down."""
        self._step_hook.remove()
        self._disarm()
        model = self._model()
        if model is not None:
            self._restore_epoch_end(model)

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """The hook that stays: it is called in every step of every optimizer, so it does next to nothing."""
        if id(optimizer) != self._latest and not self._is_mine(optimizer):
            return
        watcher = self._watcher
        watcher.step += 1
        if watcher.step >= watcher.due - 1:
            watcher.guarded("sampling a step", self._sample if watcher.step >= watcher.due else self._arm, optimizer)

    def _is_mine(self, optimizer: Any) -> bool:
        """Whether it trains this model: in a training with several optimizers others may train other models."""
        key = id(optimizer)
        if key not in self._known:
            model = self._model()
            own = {id(parameter) for parameter in model.parameters()} if model is not None else set()
            groups = optimizer.param_groups
            self._known[key] = any(id(parameter) in own for group in groups for parameter in group["params"])
        if self._known[key]:
            self._latest = key
        return self._known[key]

    def _arm(self, _optimizer: Any = None) -> None:
        """Put up what looks at the next forward pass; not in compiled models, whose code it would change."""
        model = self._model()
        if model is None or any(_is_compiled(module) for module in model.modules()):
            return
        began = time.thread_time()
        roots = [model] if self._forward_missed < 2 else list(model.children())
        self._forward = Forward(self._torch, self._watcher, wants_inputs=not self._inputs)
        for root in roots:
            self._hooks.append(root.register_forward_pre_hook(self._forward.begins, with_kwargs=True))
            self._hooks.append(root.register_forward_hook(self._forward.ended, always_call=True))
        self._spent = time.thread_time() - began

    def _disarm(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self._forward is not None:
            self._forward.leave()

    def _sample(self, optimizer: Any) -> None:
        """Look at gradients and weights before the step, and after it at what it changed."""
        began = time.thread_time()
        self._disarm()
        model = self._model()
        if model is None:
            return
        forward, self._forward = self._forward, None
        layers = list(_layers(model, self._torch.nn))
        with self._torch.no_grad():
            sample = self._gradients(layers)
            self._add_forward(sample, forward)
            small = sum(weight.numel() for layer in layers for weight in layer.weights) <= _MAX_UPDATE_NUMBERS
            before = [[_local(w).detach().clone() for w in layer.weights] for layer in layers] if small else []
        if not self._architecture:
            sample["architecture"] = self._architecture = _architecture(model)
        seconds = time.thread_time() - began + self._spent + (forward.spent if forward is not None else 0.0)
        hook: list[Any] = []

        def after(*_: Any) -> None:
            hook.pop().remove()
            self._watcher.guarded("looking at an update", self._after, layers, before, sample, seconds)

        if before:
            hook.append(optimizer.register_step_post_hook(after))
        else:
            self._done(sample, layers, seconds)

    def _after(self, layers: list[Layer], before: list[list[Any]], sample: dict[str, Any], seconds: float) -> None:
        began = time.thread_time()
        with self._torch.no_grad():
            changes = [
                _joint(self._torch, [_local(w).detach() - old for w, old in zip(layer.weights, olds)])
                for layer, olds in zip(layers, before)
            ]
            sizes = _numbers(self._torch, changes)
        weights = sample["weight"]
        sample["update"] = [size / weight if weight else math.nan for size, weight in zip(sizes, weights)]
        sample["finite"] = sample["finite"] and all(map(math.isfinite, sizes))
        self._done(sample, layers, seconds + time.thread_time() - began)

    def _done(self, sample: dict[str, Any], layers: list[Layer], seconds: float) -> None:
        began = time.thread_time()
        lists: dict[str, list[float]] = {
            name: sample.pop(name) for name in ("gradient", "weight", "update", "zero") if name in sample
        }
        sizes = [sum(weight.numel() for weight in layer.weights) for layer in layers]
        joined = watching.grouped([layer.name for layer in layers], lists, sizes)
        sample.update({name: joined[name] if name == "layers" else watching.rounded(joined[name]) for name in joined})
        self._watcher.sampled(sample, seconds + time.thread_time() - began)
        if self._watcher.due <= self._watcher.step + 1:
            self._arm()

    def _gradients(self, layers: list[Layer]) -> dict[str, Any]:
        torch = self._torch
        gradients = [[_values(w.grad) for w in layer.weights if w.grad is not None] for layer in layers]
        norms = [_joint(torch, parts) for parts in gradients]
        weights = [_joint(torch, [_local(w).detach() for w in layer.weights]) for layer in layers]
        kept = [sum((torch.count_nonzero(part) for part in parts), torch.zeros(())) for parts in gradients]
        numbers = _numbers(torch, [*norms, *weights, *kept])
        count = len(layers)
        sizes = [sum(part.numel() for part in parts) for parts in gradients]
        known = [bool(size) and not layer.is_lookup for size, layer in zip(sizes, layers)]
        zero = [1 - kept / size if ok else math.nan for kept, size, ok in zip(numbers[2 * count :], sizes, known)]
        gradient = [norm if size else math.nan for norm, size in zip(numbers[:count], sizes)]
        measured = [norm for norm, size in zip(numbers[:count], sizes) if size]
        finite = all(map(math.isfinite, [*measured, *numbers[count : 2 * count]]))
        return {"gradient": gradient, "weight": numbers[count : 2 * count], "zero": zero, "finite": finite}

    def _add_forward(self, sample: dict[str, Any], forward: Forward | None) -> None:
        """What the forward pass of this step showed; a model whose parts are called one by one is hooked by part."""
        if forward is None:
            return
        self._forward_missed += not forward.seen
        sample.update(forward.activations())
        if forward.inputs:
            told = watching.rounded(_numbers(self._torch, forward.inputs))
            sample["inputs"] = self._inputs = dict(zip(("mean", "spread", "least", "largest"), told))
        if forward.output is not None and self._outputs < _OUTPUTS_LOOKED_AT:
            self._outputs += 1
            sample["output"] = output_of(self._torch, forward.output, forward.gradient, forward.looks)


class Forward:
    """What one forward pass shows: inputs, activations, and the output with its gradient. spent: in seconds."""

    def __init__(self, torch: ModuleType, watcher: Watcher, wants_inputs: bool) -> None:
        self.seen = False
        self.spent = 0.0
        self.inputs: list[Any] = []
        self.output: Any = None
        self.gradient: Any = None
        self.looks = ""
        self._torch = torch
        self._watcher = watcher
        self._wants_inputs = wants_inputs
        self._mode: Any = None
        self._found: list[tuple[str, str, Any]] = []

    def begins(self, module: Any, args: Any, kwargs: Any) -> None:
        """The model is called."""
        if not self._torch.compiler.is_compiling() and self._mode is None and not self.seen and module.training:
            self._watcher.guarded("looking at a forward pass", self._begin, args, kwargs)

    def _begin(self, args: Any, kwargs: Any) -> None:
        if not self._torch.is_grad_enabled():
            return
        began = time.thread_time()
        if self._wants_inputs:
            given = next(_floating((args, kwargs)), None)
            if given is not None:
                part = given.detach()[:256].float()
                self.inputs = [part.mean(), part.std(unbiased=False), part.min(), part.max()]
        self._mode = _activation_mode(self._torch)(self)
        self._mode.__enter__()
        self.spent += time.thread_time() - began

    def ended(self, _module: Any, _args: Any, output: Any) -> None:
        """The call is over, also where it raised."""
        if self._mode is not None:
            self._watcher.guarded("looking at an output", self._end, output)

    def _end(self, output: Any) -> None:
        began = time.thread_time()
        self.leave()
        self.seen = True
        found = next(_floating(output), None)
        if found is not None and found.requires_grad:
            self.output = found.detach()
            self.looks = _made_by(found)
            found.register_hook(self._take_gradient)
        self.spent += time.thread_time() - began

    def leave(self) -> None:
        """See no more activations."""
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)

    def _take_gradient(self, gradient: Any) -> None:
        self.gradient = gradient.detach()

    def saw(self, name: str, output: Any) -> None:
        """An activation function gave this."""
        self._watcher.guarded("looking at an activation", self._look, name, output)

    def _look(self, name: str, output: Any) -> None:
        began = time.thread_time()
        with self._torch.no_grad():
            part = output.detach()[: _examples(output)]
            if name in _RECTIFIERS and part.dim() > 1:
                others = [axis for axis in range(part.dim()) if axis != (1 if part.dim() > 3 else part.dim() - 1)]
                self._found.append((name, "dead", (part.amax(dim=others) <= 0).float().mean()))
            elif name in _SQUASHERS:
                middle, width = _SQUASHERS[name]
                self._found.append((name, "saturated", ((part - middle).abs() > width).float().mean()))
        self.spent += time.thread_time() - began

    def activations(self) -> dict[str, dict[str, float]]:
        """Shares by activation, numbered in the order of the forward pass."""
        began = time.thread_time()
        numbers = _numbers(self._torch, [value for _, _, value in self._found[: watching.MAX_LAYERS]])
        found: dict[str, dict[str, float]] = {"dead": {}, "saturated": {}}
        for place, ((name, kind, _), number) in enumerate(zip(self._found, numbers)):
            found[kind]["%s %d" % (name.rstrip("_"), place + 1)] = round(number, 4)
        self.spent += time.thread_time() - began
        return {kind: values for kind, values in found.items() if values}


def _examples(output: Any) -> int:
    """How many examples to look at: fewer where one has many numbers, for all of them take long."""
    numbers: int = output.numel()
    return max(_LEAST_EXAMPLES, min(_EXAMPLES, _NUMBERS_LOOKED_AT * len(output) // max(numbers, 1)))


@functools.lru_cache(maxsize=None)
def _activation_mode(torch: ModuleType) -> Any:
    """A mode in which activation functions are seen, whether a module calls them or the model's own code."""
    overrides = importlib.import_module("torch.overrides")

    class ActivationMode(overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __init__(self, forward: Forward) -> None:
            super().__init__()
            self._forward = forward

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            output = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", "")
            if (name in _RECTIFIERS or name in _SQUASHERS) and isinstance(output, torch.Tensor):
                self._forward.saw(name, output)
            return output

    return ActivationMode


def output_of(torch: ModuleType, output: Any, gradient: Any, looks: str) -> dict[str, Any]:
    """What the output is and which loss its gradient is that of, told from the values of both."""
    flat = output.reshape(-1, output.shape[-1] if output.dim() > 1 else 1)[:_EXAMPLES].float()
    if not looks and flat.shape[1] > 1:
        total = flat.sum(dim=1)
        looks = "probabilities" if bool((flat >= 0).all()) and bool(((total - 1).abs() < 1e-4).all()) else ""
    if flat.shape[1] == 1 and looks == "probabilities":
        looks = "constant"  # the softmax of one number is 1
    found = {"looks": looks or "numbers", "width": int(flat.shape[1])}
    if gradient is not None:
        slope = gradient.reshape(-1, flat.shape[1])[:_EXAMPLES].float()
        found["loss"] = _loss_of(torch, flat, slope) if bool((slope != 0).any()) else "flat"
    return found


def _loss_of(torch: ModuleType, output: Any, slope: Any) -> str:
    """The name of the loss whose gradient by the output this is, up to a factor; empty where none fits."""
    target = (slope < 0).float()
    if output.shape[1] > 1 and bool((target.sum(dim=1) == 1).all()):
        share = torch.softmax(output, dim=1)
        if _is_multiple(slope, share - target):
            return "cross-entropy-of-logits"
        if bool(((slope != 0).sum(dim=1) == 1).all()):
            if _is_multiple(slope, -target):
                return "log-likelihood-of-log-probabilities"
            if _is_multiple(slope * output, -target):
                return "log-likelihood-of-probabilities"
    squashed = torch.sigmoid(output)
    if _is_multiple(slope, squashed - target):
        return "binary-cross-entropy-of-logits"
    if _is_multiple(slope * output * (1 - output), output - target):
        return "binary-cross-entropy-of-probabilities"
    return "squares-of-classes" if _is_multiple(slope, output - target) else ""


def _is_multiple(slope: Any, expected: Any) -> bool:
    """Whether each row of the slope is the same positive multiple of what is expected, up to one part in a hundred."""
    factor = (slope * expected).sum() / (expected * expected).sum().clamp_min(1e-30)
    return bool(factor > 0) and bool((slope - factor * expected).abs().max() < 0.01 * slope.abs().max())


def _made_by(tensor: Any) -> str:
    """What kind of function made it, as far as the graph tells."""
    node = tensor.grad_fn
    for _ in range(4):
        if node is None:
            return ""
        name = node.name()
        if name in _LOOKS:
            return _LOOKS[name]
        if not name.startswith(_VIEWS) or not node.next_functions:
            return ""
        node = node.next_functions[0][0]
    return ""


def _layers(model: Any, nn: ModuleType) -> Iterator[Layer]:
    """Modules with weights that learn, in the order in which the model lists them; shared weights once."""
    seen: set[int] = set()
    found = []
    for name, module in model.named_modules():
        own = [w for w in module.parameters(recurse=False) if w.requires_grad and id(w) not in seen]
        seen.update(map(id, own))
        if own and not type(own[0]).__name__.startswith("Uninitialized"):
            found.append(Layer(name or "(model)", own, isinstance(module, (nn.Embedding, nn.EmbeddingBag))))
    # Biases and norms alone say nothing of how gradients travel: they count where a model has nothing else.
    wide = [Layer(layer.name, [w for w in layer.weights if w.dim() > 1], layer.is_lookup) for layer in found]
    wide = [layer for layer in wide if layer.weights]
    yield from wide or found


def _local(tensor: Any) -> Any:
    """The part of this process of a tensor that lies on many: asking for all of it would wait for the others."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _values(gradient: Any) -> Any:
    gradient = _local(gradient).detach()
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _joint(torch: ModuleType, tensors: list[Any]) -> Any:
    """The L2 norm of all of them."""
    norms = [torch.linalg.vector_norm(t if t.is_complex() or t.element_size() > 2 else t.float()) for t in tensors]
    if len(norms) == 1:
        return norms[0]
    return torch.linalg.vector_norm(torch.stack(norms)) if norms else torch.zeros(())


def _numbers(torch: ModuleType, tensors: list[Any]) -> list[float]:
    """All of them in one transfer from a device, or one each where they lie on several."""
    if len({tensor.device for tensor in tensors}) == 1:
        return [float(number) for number in torch.stack([tensor.double() for tensor in tensors]).tolist()]
    return [float(tensor) for tensor in tensors]


def _floating(value: Any, depth: int = 0) -> Iterator[Any]:
    """The tensors of floats in what a model is given or gives, in order."""
    if hasattr(value, "is_floating_point"):
        if value.is_floating_point() and value.numel() and value.dim():
            yield value
    elif depth < 3:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        for part in parts:
            yield from _floating(part, depth + 1)


def _is_compiled(module: Any) -> bool:
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def _architecture(model: Any) -> str:
    """What the model is built of, told from its modules; plain where nothing stands out."""
    convolutions = [m for m in model.modules() if hasattr(m, "groups") and hasattr(m, "in_channels")]
    depthwise = [m for m in convolutions if m.groups > 1 and m.groups == m.in_channels]
    names = " ".join(type(module).__name__.lower() for module in model.modules())
    if "attention" in names or "transformer" in names:
        return "attention"
    if depthwise:
        widened = any(m.out_channels > 2 * m.in_channels and m.kernel_size[0] == 1 for m in convolutions)
        return "inverted-bottleneck" if widened else "depthwise"
    is_residual = any(word in names for word in ("residual", "bottleneck", "basicblock", "resnet", "resblock"))
    return "residual" if is_residual else "plain"


def _tell_epochs(model: Any, watcher: Watcher) -> Any:
    """A Lightning module tells by itself when an epoch ends: its own hook is called first, then the watcher's mark."""
    if not (hasattr(model, "on_train_epoch_end") and hasattr(model, "training_step")):
        return lambda _: None
    reference = weakref.ref(model)
    own = type(model).on_train_epoch_end

    def on_train_epoch_end(*args: Any) -> None:
        here = reference()
        if here is not None:
            own(here, *args)
            trainer = getattr(here, "trainer", None)
            watcher.mark(getattr(here, "current_epoch", None), **dict(getattr(trainer, "callback_metrics", None) or {}))

    model.on_train_epoch_end = on_train_epoch_end
    return lambda here: here.__dict__.pop("on_train_epoch_end", None)
