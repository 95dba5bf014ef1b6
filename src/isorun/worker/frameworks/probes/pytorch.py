"""Looking into a torch model at the steps of its optimizers: gradients, weights, and what a step changes.

The one hook that stays is on the optimizers' step. Before a step that is sampled, the forward pass is looked at
(`torch_forward.py`). All of it only reads: the training computes the same bits. Nothing of this is part of the model,
so it can be copied, saved, scripted and traced at any moment. Nothing is kept alive: a model that is dropped takes its
watcher with it.

Nor does it wait for a device: all numbers of a sample are copied from where they were computed in one transfer, which
is asked for when the sample is taken and read at a later step, when it is there. On a CPU it is there at once.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import threading
import time
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple

from ... import watching
from .torch_forward import Forward, is_recording, output_of

if TYPE_CHECKING:
    from ...watching import Watcher

_MAX_UPDATE_NUMBERS = 20_000_000
_OUTPUTS_LOOKED_AT = 3
# A forward pass that was not seen so often runs in code that was compiled, or not in training mode: it is left alone.
_MOST_MISSED = 6
_halted: list[Any] = []


def _remove_halted() -> None:
    """Remove the hooks of probes that see nothing more; not to be called from within a hook."""
    while _halted:
        _halted.pop().remove()


class Layer(NamedTuple):
    """The weights of one module; is_lookup: most of its rows have no gradient in any step, by what it is for."""

    name: str
    weights: list[Any]
    is_lookup: bool


class TorchProbe:
    """Looks into one model for a watcher."""

    def __init__(self, torch: ModuleType, model: Any, watcher: Watcher) -> None:
        self._torch = torch
        self._model = weakref.ref(model, lambda _: watcher.leave())
        self._watcher = watcher
        self._is_halted = False
        # By the optimizers themselves: an id comes again when one is gone and another is made in its place.
        self._known: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._latest: Any = lambda: None
        self._wake = 1
        self._forward: Forward | None = None
        self._asked: list[tuple[DeviceReading, Callable[[Any], None]]] = []
        self._updating: tuple[Sample, list[Any]] | None = None
        self._knows_inputs = False
        self._outputs = 0
        self._architecture = ""
        self._normalises = _normalises_first(model)
        self._spent = 0.0
        self._forward_missed = 0
        self._restore_epoch_end = _tell_epochs(model, watcher)
        _remove_halted()
        self._steps = _for_all_optimizers()
        self._steps.tell(self)
        watcher.guarded("looking into the model", self._arm)

    def halt(self) -> None:
        """See nothing more. The hooks stay until later: torch may be going through them at this moment."""
        self._is_halted = True
        self._updating = None
        self._steps.tell_no_more(self)
        if self._forward is not None:
            self._forward.halt()
            _halted.append(self._forward)
        self._watcher.guarded("reading a sample", self.read, True)

    def stop(self) -> None:
        """Take everything down."""
        if self._updating:
            self._watcher.guarded("looking at an update", self._finish_update)
        self.halt()
        _remove_halted()
        self._steps.remove()
        model = self._model()
        if model is not None:
            self._restore_epoch_end(model)

    def before_step(self, optimizer: Any) -> None:
        """What the hook that stays calls in every step of every optimizer, so it does next to nothing."""
        if self._latest() is not optimizer and not self._is_mine(optimizer):
            return
        watcher = self._watcher
        watcher.step += 1
        if watcher.step >= self._wake and not self._is_halted:
            watcher.guarded("sampling a step", self._wake_up)

    def read(self, wait: bool = False) -> None:
        """Tell the watcher the numbers that have arrived. wait: for those on their way, too."""
        while self._asked and (wait or self._asked[0][0].is_there()):
            reading, tell = self._asked.pop(0)
            began = time.thread_time()
            tell(reading.numbers())
            self._watcher.spend(time.thread_time() - began)

    def _wake_up(self) -> None:
        """See what the last sampled step changed, sample this one, and look at the next, each if it is time."""
        watcher = self._watcher
        if is_recording(self._torch):
            return
        if self._updating:
            self._finish_update()
        self.read()
        if watcher.step >= watcher.due:
            self._sample()
            self.read()
            watcher.plan()
        if watcher.step >= watcher.due - 1 and self._forward is None:
            self._arm()
        self._wake = max(watcher.step + 1, 0 if self._updating or self._asked else watcher.due - 1)

    def _is_mine(self, optimizer: Any) -> bool:
        """Whether it trains this model: in a training with several optimizers others may train other models."""
        if optimizer not in self._known:
            model = self._model()
            own = {id(parameter) for parameter in model.parameters()} if model is not None else set()
            groups = optimizer.param_groups
            self._known[optimizer] = any(id(parameter) in own for group in groups for parameter in group["params"])
        if self._known[optimizer]:
            self._latest = weakref.ref(optimizer)
        return self._known[optimizer]

    def _arm(self) -> None:
        """Put up what looks at the next forward pass; not in compiled models, whose code it would change."""
        model = self._model()
        if model is None or self._forward_missed >= _MOST_MISSED or any(map(_is_compiled, model.modules())):
            return
        began = time.thread_time()
        roots = [model] if self._forward_missed < 2 else list(model.children())
        self._forward = Forward(self._torch, self._watcher, roots, wants_inputs=not self._knows_inputs)
        self._spent = time.thread_time() - began

    def _sample(self) -> None:
        """Look at gradients and weights before the step; the weights are kept to see what it changes."""
        began = time.thread_time()
        forward, self._forward = self._forward, None
        if forward is not None:
            forward.remove()
        model = self._model()
        if model is None:
            return
        with self._torch.no_grad():
            taken = Sample(self._torch, list(_layers(model, self._torch.nn)), self._watcher.step)
            if forward is not None:
                self._add_forward(taken, forward)
            if not self._architecture:
                taken.about["architecture"] = self._architecture = _architecture(model)
            if taken.layers:
                self._ask(taken.numbers, taken.matrices, lambda host: self._watcher.take(taken.told(host), taken.step))
            small = sum(weight.numel() for weight in taken.weights) <= _MAX_UPDATE_NUMBERS
            self._updating = (taken, [weight.clone() for weight in taken.weights]) if small and taken.layers else None
        seconds = time.thread_time() - began + self._spent + (forward.spent if forward is not None else 0.0)
        self._watcher.spend(seconds, anew=True)

    def _add_forward(self, taken: Sample, forward: Forward) -> None:
        """What the forward pass of this step showed; a model whose parts are called one by one is hooked by part."""
        self._forward_missed += not forward.seen
        is_known = self._outputs >= _OUTPUTS_LOOKED_AT or forward.output is None
        taken.add_forward(forward, with_output=not is_known)
        self._outputs += not is_known
        if forward.inputs:
            self._knows_inputs = True
            taken.about["inputs"] = {"normalised": 1.0} if self._normalises else {}

    def _finish_update(self) -> None:
        """How far the step went, by the size of the weights that it began with."""
        assert self._updating is not None
        began = time.thread_time()
        (taken, olds), self._updating = self._updating, None
        with self._torch.no_grad():
            moved = [weight - old for weight, old in zip(taken.weights, olds)]
            self._ask(_norms(self._torch, moved), [], lambda host: self._watcher.updated(*taken.update(host)))
        self._watcher.spend(time.thread_time() - began)

    def _ask(self, numbers: list[Any], matrices: list[Any], tell: Callable[[Any], None]) -> None:
        self._asked.append((DeviceReading(self._torch, numbers, matrices), tell))


class StepHook:
    """The one hook on the steps of all optimizers, for all probes: up while anybody is told.

    Trainings may go on in many threads, and torch goes through the hooks themselves: one that came or went meanwhile
    would end another thread's step. So who is told changes here alone, and the hook goes when no other thread is left
    that stepped since it was put up.
    """

    def __init__(self) -> None:
        self._optimizers = importlib.import_module("torch.optim.optimizer")
        self._told: list[TorchProbe] = []
        self._handle: Any = None
        self._stepping: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def tell(self, probe: TorchProbe) -> None:
        """Tell of every step."""
        with self._lock:
            self._told.append(probe)
            if self._handle is None:
                self._handle = self._optimizers.register_optimizer_step_pre_hook(self._before_step)

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._stepping.add(threading.current_thread())
        for probe in tuple(self._told):
            probe.before_step(optimizer)

    def tell_no_more(self, probe: TorchProbe) -> None:
        """At whatever moment, also from within the hook or while memory is cleared: without the lock."""
        if probe in self._told:
            self._told.remove(probe)

    def remove(self) -> None:
        """Take the hook down where nobody is told; not to be called from within it."""
        with self._lock:
            others = self._stepping - {threading.current_thread()}
            if self._handle is not None and not self._told and not any(one.is_alive() for one in tuple(others)):
                self._handle.remove()
                self._handle = None
                self._stepping.clear()


@functools.lru_cache(maxsize=None)
def _for_all_optimizers() -> StepHook:
    return StepHook()


class DeviceReading:
    """Tensors on their way: copied in one piece without waiting for the device, and read when they are there."""

    def __init__(self, torch: ModuleType, numbers: list[Any], matrices: list[Any]) -> None:
        self._event: Any = None
        device = next((one.device for one in (*numbers, *matrices) if one.device.type != "cpu"), numbers[0].device)
        numbers, matrices = (
            [one if one.device == device else one.to(device, non_blocking=True) for one in part]
            for part in (numbers, matrices)
        )
        joined = torch.stack(numbers)
        if matrices:
            joined = torch.cat([joined, *(one.reshape(-1) for one in matrices)])
        self._host = joined
        if device.type == "cuda":
            self._host = torch.empty(joined.shape, dtype=joined.dtype, device="cpu", pin_memory=True)
            self._host.copy_(joined, non_blocking=True)
            self._event = torch.cuda.Event(blocking=True)
            self._event.record(torch.cuda.current_stream(device))

    def is_there(self) -> bool:
        """Whether reading waits for nothing."""
        return self._event is None or bool(self._event.query())

    def numbers(self) -> Any:
        """A flat tensor in the memory of the CPU: the numbers, then the matrices."""
        if self._event is not None:
            self._event.synchronize()
        return self._host.cpu()


class Sample:
    """A sampled step: the tensors that show it, and what they tell once they are numbers.

    numbers: tensors of one number. matrices: the first rows of the output and of the gradient by it, where they were
    asked for. about: what is known without them.
    """

    def __init__(self, torch: ModuleType, layers: list[Layer], step: int) -> None:
        self._torch = torch
        self.layers = layers
        self.step = step
        self.about: dict[str, Any] = {}
        gradients = [[_values(weight.grad) for weight in layer.weights if weight.grad is not None] for layer in layers]
        self._sizes = [sum(part.numel() for part in parts) for parts in gradients]
        self._counts = list(map(len, gradients))
        flat = list(itertools.chain(*gradients))
        self.weights = [_local(weight).detach() for layer in layers for weight in layer.weights]
        self.numbers = [*_norms(torch, flat), *_norms(torch, self.weights), *map(torch.count_nonzero, flat)]
        self.matrices: list[Any] = []
        self._forward: Forward | None = None
        self._weight: list[float] = []

    def add_forward(self, forward: Forward, with_output: bool) -> None:
        """Ask for what a forward pass showed, too."""
        self._forward = forward
        self.numbers += [*(count for *_, count in forward.found), *forward.inputs]
        if with_output:
            self.matrices = forward.matrices()

    def told(self, host: Any) -> dict[str, Any]:
        """The sample, from all that was asked for."""
        numbers = host[: len(self.numbers)].tolist()
        rest = iter(numbers)
        each = [len(layer.weights) for layer in self.layers]
        norms, self._weight = _joined(rest, self._counts), _joined(rest, each)
        kept = [sum(itertools.islice(rest, count)) for count in self._counts]
        known = [bool(size) and not layer.is_lookup for size, layer in zip(self._sizes, self.layers)]
        zero = [1 - some / size if ok else math.nan for some, size, ok in zip(kept, self._sizes, known)]
        gradient = [norm if size else math.nan for norm, size in zip(norms, self._sizes)]
        measured = [norm for norm, size in zip(norms, self._sizes) if size]
        told = self._columns({"gradient": gradient, "weight": self._weight, "zero": zero})
        return {
            **told,
            "finite": all(map(math.isfinite, [*measured, *self._weight])),
            **self._shown(rest, host[len(self.numbers) :]),
        }

    def _shown(self, rest: Iterator[float], matrices: Any) -> dict[str, Any]:
        """What the forward pass showed."""
        told, forward = dict(self.about), self._forward
        if forward is None:
            return told
        told.update(forward.activations(list(itertools.islice(rest, len(forward.found)))))
        if forward.inputs:
            told["inputs"] = {
                **dict(zip(("mean", "spread", "least", "largest"), watching.rounded(list(rest)))),
                **self.about["inputs"],
            }
        if self.matrices:
            shape = self.matrices[0].shape
            parts = [part.reshape(shape) for part in matrices.split(shape[0] * shape[1])]
            told["output"] = output_of(self._torch, parts[0], parts[1] if len(parts) > 1 else None, forward.looks)
        return told

    def update(self, host: Any) -> tuple[list[float], bool]:
        """How far the step went by layer, and whether that is a number."""
        moved = _joined(iter(host.tolist()), [len(layer.weights) for layer in self.layers])
        update = [change / size if size else math.nan for change, size in zip(moved, self._weight)]
        told: list[float] = self._columns({"update": update})["update"]
        return told, all(map(math.isfinite, moved))

    def _columns(self, columns: dict[str, list[float]]) -> dict[str, Any]:
        """The columns of a row, with as many entries as rows have."""
        sizes = [sum(weight.numel() for weight in layer.weights) for layer in self.layers]
        joined = watching.grouped([layer.name for layer in self.layers], columns, sizes)
        return {name: joined[name] if name == "layers" else watching.rounded(joined[name]) for name in joined}


def _layers(model: Any, nn: ModuleType) -> Iterator[Layer]:
    """Modules with weights that learn, in the order in which the model lists them; shared weights once."""
    seen: set[int] = set()
    found = []
    for name, module in model.named_modules():
        own = [w for _, w in module._parameters.items() if w is not None and w.requires_grad and id(w) not in seen]  # noqa: SLF001
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


def _norms(torch: ModuleType, tensors: list[Any]) -> list[Any]:
    """The L2 norm of each; on a GPU in one go."""
    wide = [one if one.is_complex() or one.element_size() > 2 else one.float() for one in tensors]
    if wide and wide[0].is_cuda and hasattr(torch, "_foreach_norm") and not any(one.is_complex() for one in wide):
        return list(torch._foreach_norm(wide))  # noqa: SLF001  a launch for all, as clipping in torch itself does
    return [torch.linalg.vector_norm(one) for one in wide]


def _joined(norms: Iterator[float], counts: list[int]) -> list[float]:
    """Of each so many norms, the norm of all of them; 0 for none."""
    parts = (list(itertools.islice(norms, count)) for count in counts)
    return [part[0] if len(part) == 1 else math.sqrt(sum(norm * norm for norm in part)) for part in parts]


def _is_compiled(module: Any) -> bool:
    # What is not there is looked for in many places by a module's own `__getattr__`, which takes long.
    return "_orig_mod" in module.__dict__.get("_modules", ()) or module.__dict__.get("_compiled_call_impl") is not None


def _normalises_first(model: Any) -> bool:
    """Whether the first module that computes anything with weights normalises, so that inputs may be as they are."""
    leaves = (module for module in model.modules() if next(module.parameters(recurse=False), None) is not None)
    return "Norm" in type(next(leaves, None)).__name__


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
    watcher.is_told_epochs = True
    model.on_train_epoch_end = _EpochEnd(model, watcher)
    return lambda here: here.__dict__.pop("on_train_epoch_end", None)


class _EpochEnd:
    """Stands for a module's own hook. A copy of it, or what is saved, is the hook of the copied module's class."""

    def __init__(self, model: Any, watcher: Watcher) -> None:
        self._model = weakref.ref(model)
        self._watcher = watcher

    def __call__(self, *args: Any) -> None:
        model = self._model()
        if model is not None:
            type(model).on_train_epoch_end(model, *args)
            trainer = getattr(model, "trainer", None)
            metrics = dict(getattr(trainer, "callback_metrics", ()) or ())
            self._watcher.end_epoch(getattr(model, "current_epoch", None), metrics)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._model(), "on_train_epoch_end")
