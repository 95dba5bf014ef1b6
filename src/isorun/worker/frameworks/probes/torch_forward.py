"""Looking at one forward pass of a torch model: its inputs, its activations, its output and the gradient by that.

For a step that is sampled, torch is asked to tell of every call of a module, and a mode that sees activation functions
is on during the model's forward pass; both are gone when it ends. They only read, and nothing of them is part of the
model. The gradient by the output tells which loss was taken of it.
"""

from __future__ import annotations

import functools
import importlib
import time
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterator

from ... import watching

if TYPE_CHECKING:
    from ...watching import Watcher

_EXAMPLES = 64
_LEAST_EXAMPLES = 8
_NUMBERS_LOOKED_AT = 65_536
_RECTIFIERS = frozenset(("relu", "relu_", "relu6"))
_SQUASHERS = {"sigmoid": (0.5, 0.48), "sigmoid_": (0.5, 0.48), "tanh": (0.0, 0.96), "tanh_": (0.0, 0.96)}
# What a tensor that came out of these is, and what merely changes its shape or type.
_LOOKS = {
    "SoftmaxBackward0": "probabilities",
    "LogSoftmaxBackward0": "log-probabilities",
    "SigmoidBackward0": "sigmoid",
    "ReluBackward0": "rectified",
}
# What the hooks take of one call of a module, measured; most calls are not those of the model itself.
_SECONDS_A_CALL = 3e-6
_VIEWS = ("View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Alias", "Permute", "Transpose", "UnsafeView")


class Forward:
    """What one forward pass shows: inputs, activations, and the output with its gradient. spent: in seconds.

    The hooks are torch's for all modules: one of a module's own would be copied, pickled and compiled with it. roots:
    the modules whose calls are looked at.
    """

    def __init__(self, torch: ModuleType, watcher: Watcher, roots: list[Any], wants_inputs: bool) -> None:
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
        self._is_halted = False
        self.found: list[tuple[str, str, int, Any]] = []
        self._roots = {id(root) for root in roots}
        self._within = 0
        self._hooks = _for_all_modules(torch)
        self._hooks.tell(self)

    def remove(self) -> None:
        """Take the hooks down; not to be called where torch may be going through them."""
        self.leave()
        self._hooks.tell_no_more(self)

    def halt(self) -> None:
        """See nothing more, at whatever moment; the hooks go when a module is called next."""
        self._is_halted = True
        self.leave()

    def begins(self, module: Any, args: Any) -> None:
        """A module is called; torch goes through a copy of these hooks."""
        self.spent += _SECONDS_A_CALL
        if self._is_halted:
            self.remove()
        if id(module) not in self._roots or self._mode is not None or self.seen or not module.training:
            return
        if not self._torch.jit.is_tracing() and not is_recording(self._torch):
            self._watcher.guarded("looking at a forward pass", self._begin, module, args)

    def _begin(self, module: Any, args: Any) -> None:
        if not self._torch.is_grad_enabled():
            return
        began = time.thread_time()
        self._within = id(module)
        self._look_at_inputs(args)
        self._mode = _activation_mode(self._torch)(self)
        self._mode.__enter__()
        self.spent += time.thread_time() - began

    def _look_at_inputs(self, given: Any) -> None:
        first = next(_floating(given), None) if self._wants_inputs and not self.inputs else None
        if first is not None:
            part = first.detach()[:256].float()
            self.inputs = [part.mean(), part.std(unbiased=False), part.min(), part.max()]

    def ended(self, module: Any, kwargs: Any, output: Any) -> None:
        """The call of a module is over, also where it raised."""
        if self._mode is not None and id(module) == self._within:
            self._watcher.guarded("looking at an output", self._end, kwargs, output)

    def _end(self, kwargs: Any, output: Any) -> None:
        began = time.thread_time()
        self.leave()
        self.seen = True
        self._look_at_inputs(kwargs)  # torch tells them only now
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
        if len(self.found) >= watching.MAX_LAYERS:
            return
        began = time.thread_time()
        part = output.detach()[: _examples(output)]
        if name in _RECTIFIERS and part.dim() > 1:
            others = [axis for axis in range(part.dim()) if axis != (1 if part.dim() > 3 else part.dim() - 1)]
            most = part.amax(dim=others)  # nothing that is rectified is less than zero
            self.found.append((name, "dead", most.numel(), self._torch.count_nonzero(most)))
        elif name in _SQUASHERS:
            middle, width = _SQUASHERS[name]
            far = (part - middle if middle else part).abs() > width
            self.found.append((name, "saturated", far.numel(), self._torch.count_nonzero(far)))
        self.spent += time.thread_time() - began

    def matrices(self) -> list[Any]:
        """The first rows of the output and, where it has one, of the gradient by it."""
        width = self.output.shape[-1] if self.output.dim() > 1 else 1
        rows = max(_LEAST_EXAMPLES, min(_EXAMPLES, _NUMBERS_LOOKED_AT // max(width, 1)))
        both = (self.output,) if self.gradient is None else (self.output, self.gradient)
        return [one.reshape(-1, width)[:rows].float() for one in both]

    def activations(self, numbers: list[float]) -> dict[str, dict[str, float]]:
        """Shares by activation, numbered in the order of the forward pass, from the counts of `found`."""
        shares: dict[str, dict[str, float]] = {"dead": {}, "saturated": {}}
        for place, ((name, kind, size, _), count) in enumerate(zip(self.found, numbers)):
            share = count / size if kind == "saturated" else 1 - count / size
            shares[kind]["%s %d" % (name.rstrip("_"), place + 1)] = round(share, 4)
        return {kind: values for kind, values in shares.items() if values}


class ModuleHooks:
    """The hooks for all modules, up while anybody is told.

    They are the same two functions under the same keys each time: code that was compiled while they were up goes by
    that, and would be compiled anew for each sample.
    """

    def __init__(self, torch: ModuleType) -> None:
        self._module = importlib.import_module("torch.nn.modules.module")
        self._told: list[Forward] = []
        self._entries: list[tuple[dict[int, Any], int, Any]] = []
        self._is_up = False
        told, is_compiling = self._told, torch.compiler.is_compiling

        def begins(module: Any, args: Any) -> None:
            if not is_compiling():
                for forward in tuple(told):
                    forward.begins(module, args)

        def ended(module: Any, _args: Any, *kwargs_and_output: Any) -> None:
            # Where the call raised, torch leaves the keyword arguments out.
            if not is_compiling():
                for forward in tuple(told):
                    forward.ended(module, kwargs_and_output[:-1], kwargs_and_output[-1])

        self._begins, self._ended = begins, ended
        # Who calls a compiled model is warned of hooks that see each call twice; these look at one call once. Asked
        # for once: after each new filter, warnings that were told come again.
        warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global hooks", UserWarning)

    def tell(self, forward: Forward) -> None:
        """Tell of every call of a module."""
        self._told.append(forward)
        if not self._entries:
            self._register()
        elif not self._is_up:
            for table, key, value in self._entries:
                table[key] = value
        self._is_up = True

    def _register(self) -> None:
        """Have torch put them up, once, and see where: it takes a new key each time, and leaves some entries behind."""
        handles = (
            self._module.register_module_forward_pre_hook(self._begins),
            self._module.register_module_forward_hook(self._ended, with_kwargs=True, always_call=True),
        )
        tables = [table for name, table in vars(self._module).items() if name.startswith("_global_forward_")]
        self._entries = [
            (table, one.id, table[one.id])
            for one in handles
            for table in tables
            if isinstance(table, dict) and one.id in table
        ]

    def tell_no_more(self, forward: Forward) -> None:
        """Without anybody to tell, the hooks are taken down."""
        if forward in self._told:
            self._told.remove(forward)
        if not self._told and self._is_up:
            for table, key, _ in self._entries:
                table.pop(key, None)
            self._is_up = False


@functools.lru_cache(maxsize=None)
def _for_all_modules(torch: ModuleType) -> ModuleHooks:
    return ModuleHooks(torch)


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


def output_of(torch: ModuleType, output: Any, slope: Any, looks: str) -> dict[str, Any]:
    """What the output is and which loss its gradient is that of, told from the values of both."""
    if not looks and output.shape[1] > 1:
        total = output.sum(dim=1)
        looks = "probabilities" if bool((output >= 0).all()) and bool(((total - 1).abs() < 1e-4).all()) else ""
    if output.shape[1] == 1 and looks == "probabilities":
        looks = "constant"  # the softmax of one number is 1
    found = {"looks": looks or "numbers", "width": int(output.shape[1])}
    if slope is not None:
        found["loss"] = _loss_of(torch, output, slope) if bool((slope != 0).any()) else "flat"
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


def _floating(value: Any, depth: int = 0) -> Iterator[Any]:
    """The tensors of floats in what a model is given or gives, in order."""
    if hasattr(type(value), "is_floating_point"):  # its class is asked: a dictionary of attributes may raise anything
        if value.is_floating_point() and value.numel() and value.dim():
            yield value
    elif depth < 3:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        for part in parts:
            yield from _floating(part, depth + 1)


def is_recording(torch: ModuleType) -> bool:
    """Whether the device records what is launched, to do it again and again: nothing of ours belongs in that."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
