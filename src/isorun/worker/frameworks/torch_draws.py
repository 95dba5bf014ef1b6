"""torch's draws: each is told by where it is made, and comes from a generator of its stream.

The state of a stream is put into the very generator that torch would draw from, and taken out after the draw: so it
works for operations that take no generator, on every device, and for generators of the training's own. What a
generator held before stands in it again between draws; nothing that is seen moves it.

What is drawn in compiled code, or in a CUDA graph, is not seen: there it comes from the generator as it stands, whose
seed follows nothing, and that is told.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from types import FrameType, ModuleType
from typing import Any, Callable
from weakref import WeakKeyDictionary, ref

from .. import reaching, seeding
from ..streams import (
    AUGMENTATION,
    DATASET,
    DROPOUT,
    FORWARD,
    ITERATION,
    MODULE,
    ORDER,
    OTHER,
    PARTED,
    SEEDS,
    WEIGHTS,
    Streams,
    owner_of,
)

_FUNCTIONS = (
    *("rand", "randn", "randint", "randperm", "normal", "bernoulli", "binomial", "multinomial", "poisson"),
    *("rand_like", "randn_like", "randint_like"),
)
_METHODS = (
    *("normal_", "uniform_", "random_", "bernoulli", "bernoulli_", "exponential_", "cauchy_", "geometric_"),
    *("log_normal_", "multinomial"),
)
# (input, p, train) each.
_DROPOUTS = (
    *("dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_"),
    *("feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout"),
)
# Parts of torch that draw and are no operations themselves: random_split has its randperm by name.
_BY_NAME = ("torch.utils.data.", "torch.nn.", "torch.distributions.")
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")

# The end of a file's name, functions in it (none for all), and what they say of a draw that is made there.
_PLACES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("/torch/nn/init.py", (), WEIGHTS),
    ("/torch/nn/modules/module.py", ("apply",), WEIGHTS),
    ("/torch/utils/data/sampler.py", (), ORDER),
    ("/torch/utils/data/distributed.py", (), ORDER),
    ("/torch/utils/data/dataloader.py", ("__init__", "_reset", "_share_dist_seed"), SEEDS),
    ("/torch/utils/data/_utils/fetch.py", ("fetch",), AUGMENTATION),
    ("/torch/utils/data/_utils/worker.py", (), AUGMENTATION),
    ("/torch/utils/data/dataset.py", ("random_split",), OTHER),
    ("/transformers/data/data_collator.py", (), AUGMENTATION),
)
_AUGMENTING = re.compile(
    r"/(torchvision/transforms|torchaudio/transforms|kornia/augmentation|albumentations|monai/transforms|imgaug|"
    r"audiomentations|timm/data|torch_geometric/transforms)/"
)


def place(frame: FrameType) -> str:
    """What is known of a place by its file, or by what the function belongs to; "" for nothing."""
    file, name = frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
    for ending, functions, said in _PLACES:
        if file.endswith(ending) and (not functions or name in functions):
            return said
    if _AUGMENTING.search(file):
        return AUGMENTATION
    if name not in ("__init__", "forward", "__iter__", "__next__", "configure_model", "reset_parameters"):
        return ""
    return _place_of_owner(owner_of(frame), name)


def _place_of_owner(owner: Any, name: str) -> str:
    torch: Any = sys.modules.get("torch")
    data = getattr(torch.utils, "data", None)
    if isinstance(owner, torch.nn.Module):
        return FORWARD if name == "forward" else "" if name in ("__iter__", "__next__") else MODULE
    if data is None or name not in ("__init__", "__iter__", "__next__"):
        return ""
    if isinstance(owner, data.Sampler):
        return ORDER
    if name == "__init__":
        return DATASET if isinstance(owner, data.Dataset) else ""
    return ITERATION if isinstance(owner, data.IterableDataset) else ""


def _trains(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a dropout draws: with a chance, and in training."""
    chance = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    train = args[2] if len(args) > 2 else kwargs.get("train", kwargs.get("training", True))
    return bool(train) and chance not in (0, None)


def _recurs_with_dropout(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> bool:
    """The chance is the only fraction among the arguments, and whether it trains stands behind it."""
    place_of_chance = next((number for number, value in enumerate(args) if isinstance(value, float)), None)
    return place_of_chance is not None and bool(args[place_of_chance]) and bool(args[place_of_chance + 1])


def _attends_with_dropout(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool(kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0))


def _know_to_compiler(original: Callable[..., Any], draw: Callable[..., Any]) -> None:
    """TorchScript knows operations by the very functions: what stands for one is compiled as the one."""
    builtins: Any = importlib.import_module("torch.jit._builtins")
    if hasattr(builtins, "_find_builtin") and hasattr(builtins, "_register_builtin"):
        operation = builtins._find_builtin(original)  # noqa: SLF001
        if operation is not None:
            builtins._register_builtin(draw, operation)  # noqa: SLF001


def _always(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> bool:
    return True


Draws = Callable[[Any, Any], bool]


class GeneratorStates:
    """What is kept of each generator, as long as the training has it.

    Generators of torch before 2.12 take no weak references. They are held, and from time to time those that nobody else
    holds any more are let go: a training may make one a sample.
    """

    _ONLY_HERE = 3  # references that are seen of a generator that this holds: the pair, the loop's name, the question

    def __init__(self) -> None:
        self._weakly: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
        self._held: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._most = 64

    def __len__(self) -> int:
        return len(self._weakly) + len(self._held)

    def of(self, generator: Any) -> dict[str, Any]:
        """The states of a generator by stream, to be changed in place."""
        try:
            return self._weakly.setdefault(generator, {})
        except TypeError:
            if id(generator) not in self._held:
                self._let_go()
            return self._held.setdefault(id(generator), (generator, {}))[1]

    def forget(self, generator: Any) -> None:
        """It starts anew."""
        self.of(generator).clear()

    def _let_go(self) -> None:
        if len(self._held) < self._most:
            return
        for key in list(self._held):
            generator = self._held[key][0]
            if sys.getrefcount(generator) <= self._ONLY_HERE:
                del self._held[key]
        self._most = max(64, 2 * len(self._held))


class Parameters:
    """The parameters of all modules that are made, known by the memory they lie in: `weight.data` has no other sign."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[Any]] = {}

    def follow(self, torch: Any) -> None:
        """Have torch tell each; before 2.0 it cannot, and a draw into `weight.data` is told by its place alone."""
        hook = getattr(torch.nn.modules.module, "register_module_parameter_registration_hook", None)
        if hook is not None:
            hook(self._registered)

    def _registered(self, _module: Any, _name: str, parameter: Any) -> None:
        memory = _memory(parameter)
        if memory is not None:
            same = self._by_size.setdefault(memory[1], [])
            same[:] = [held for held in same if held() is not None]
            same.append(ref(parameter))

    def hold(self, tensor: Any) -> bool:
        """Whether a tensor is a parameter, or lies where one does."""
        memory = _memory(tensor)
        held = self._by_size.get(memory[1], ()) if memory is not None else ()
        return any(parameter is not None and _memory(parameter) == memory for parameter in (each() for each in held))


def _memory(tensor: Any) -> tuple[int, int] | None:
    """Where a tensor lies, and how many bytes; None for what has no memory, such as a module that is to be lazy."""
    try:
        storage = tensor.untyped_storage()
        return (storage.data_ptr(), storage.nbytes()) if storage.data_ptr() else None
    except (AttributeError, RuntimeError, NotImplementedError, ValueError):
        return None


class TorchDraws:
    """Reaches all that draws, and keeps the states of the streams of each generator."""

    def __init__(self, torch: ModuleType, streams: Streams) -> None:
        self._torch = torch
        self._streams = streams
        self._states = GeneratorStates()
        self._parameters = Parameters()
        # The methods themselves: those that a training calls make streams start anew.
        self._set_state: Callable[..., Any] = torch.Generator.set_state
        self._is_compiling: Callable[[], bool] = getattr(
            getattr(torch, "compiler", None), "is_compiling", lambda: False
        )
        self._unseen: dict[str, int] = {}
        self._cpu: Any = torch.device("cpu")

    def install(self) -> None:
        """Reach functions of the module and of its tensors, dropout wherever it is called from, and states."""
        torch, streams = self._torch, self._streams
        streams.rules.append(place)
        streams.parted_at_draws.add("torch")
        for name in _FUNCTIONS:
            self._part_everywhere(name)
        for name in _METHODS:
            self._part(torch.Tensor, name, f"torch.Tensor.{name}")
        hidden = importlib.import_module("torch._VF")
        for owner in (torch, hidden):
            for name in _DROPOUTS:
                self._part(owner, name, f"torch.{name}", DROPOUT, _trains)
        for name in _RECURRENT:
            self._part(hidden, name, f"torch.{name}", DROPOUT, _recurs_with_dropout)
        attention = "scaled_dot_product_attention"
        self._part(torch.nn.functional, attention, f"torch.{attention}", DROPOUT, _attends_with_dropout)
        for name in ("manual_seed", "seed", "set_state"):
            reaching.follow_method(torch.Generator, name, self._states.forget)
        self._keep_states()
        self._parameters.follow(torch)
        streams.out_of_sight.append(self._drawn_unseen)

    def _part_everywhere(self, name: str) -> None:
        """Also where modules of torch have a function by its name: those were imported before anyone could reach it."""
        original: Any = getattr(self._torch, name, None)
        self._part(self._torch, name, f"torch.{name}")
        for module_name, module in list(sys.modules.items()):
            held = getattr(module, "__dict__", {}) if module_name.startswith(_BY_NAME) else {}
            if original is not None and held.get(name) is original:
                setattr(module, name, getattr(self._torch, name))

    def _part(self, owner: Any, name: str, call: str, always: str = "", draws: Draws = _always) -> None:
        """always: the stream of all its draws. draws: whether a call with these arguments draws."""
        original: Callable[..., Any] | None = getattr(owner, name, None)
        if original is None:
            return
        is_compiling = self._is_compiling

        @functools.wraps(original)
        def draw(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not draws(args, kwargs):
                return original(*args, **kwargs)
            generator = self._generator(args, kwargs)
            if generator is None:
                return original(*args, **kwargs)
            stream = always or self._stream(name, args, kwargs, sys._getframe(1))  # noqa: SLF001
            self._streams.count(stream, call)
            return self._drawn(generator, stream, original, args, kwargs)

        _know_to_compiler(original, draw)
        setattr(owner, name, draw)

    def _stream(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> str:
        found = self._streams.stream_at(name, frame)
        if found != OTHER:
            return found
        filled = args[0] if args and name.endswith("_") else None
        is_weight = getattr(filled, "requires_grad", False) is True or self._parameters.hold(filled)
        return WEIGHTS if is_weight or kwargs.get("requires_grad") is True else OTHER

    def _drawn(self, generator: Any, stream: str, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        with self._streams.lock:
            before = generator.get_state()
            states = self._states.of(generator)
            self._set_state(generator, self._state(generator, states, stream))
            try:
                return original(*args, **kwargs)
            finally:
                states[stream] = generator.get_state()
                self._set_state(generator, before)

    def _state(self, generator: Any, states: dict[str, Any], stream: str) -> Any:
        if stream not in states:
            with seeding.suspended():
                seed = self._streams.seed_of(stream, "torch", generator.initial_seed())
                states[stream] = self._torch.Generator(generator.device).manual_seed(seed).get_state()
        return states[stream]

    def _generator(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
        """The generator that torch would draw from; None where nothing is drawn, or where it cannot be changed."""
        own = kwargs.get("generator")
        if own is not None:
            return own
        torch: Any = self._torch
        device = kwargs.get("device")
        if device is None:
            device = next((item.device for item in args[:1] if isinstance(item, torch.Tensor)), None)
        if device is None:
            device = self._default_device()
        if not isinstance(device, torch.device):
            device = torch.device(device)
        if device.type == "cpu":
            return torch.default_generator
        if device.type == "cuda":
            return self._of_gpu(device.index)
        if device.type != "meta":
            self._count_unseen(f"on the device {device.type}")
        return None

    def _default_device(self) -> Any:
        """A default other than the CPU is a function mode: without any of these there is nothing to ask."""
        torch: Any = self._torch
        modes = getattr(torch._C, "_len_torch_function_stack", None)  # noqa: SLF001
        if not hasattr(torch, "get_default_device") or (modes is not None and not modes()):
            return self._cpu
        return torch.get_default_device()

    def _of_gpu(self, index: int | None) -> Any | None:
        cuda: Any = self._torch.cuda
        cuda.init()
        if cuda.is_current_stream_capturing():
            self._count_unseen("in a CUDA graph")
            return None
        return cuda.default_generators[cuda.current_device() if index is None else index]

    def _count_unseen(self, where: str) -> None:
        self._unseen[where] = self._unseen.get(where, 0) + 1

    def _drawn_unseen(self) -> str:
        """Who draws in compiled code moves the generator itself."""
        torch: Any = self._torch
        found = [f"{number} draws {where}" for where, number in self._unseen.items()]
        started = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
        for generator in (torch.default_generator, *started):
            with seeding.suspended():
                seeded = torch.Generator(generator.device).manual_seed(generator.initial_seed())
            if not torch.equal(generator.get_state(), seeded.get_state()):
                found.append(f"torch's generator of {generator.device}")
        return ", ".join(found)

    def _keep_states(self) -> None:
        """A state that a training asks for, as checkpointed layers do, has those of the streams behind it."""
        torch: Any = self._torch
        for owner in (torch, torch.random):
            self._wrap_states(owner, lambda *_args, **_kwargs: torch.default_generator)
        for owner in (torch.cuda, torch.cuda.random):
            self._wrap_states(owner, self._gpu_of_state)

    def _gpu_of_state(self, device: Any = "cuda") -> Any | None:
        cuda: Any = self._torch.cuda
        if not cuda.is_initialized():
            return None
        index = device if isinstance(device, int) else self._torch.device(device).index
        return cuda.default_generators[cuda.current_device() if index is None else index]

    def _wrap_states(self, owner: Any, generator_of: Callable[..., Any]) -> None:
        get, put = owner.get_rng_state, owner.set_rng_state

        @functools.wraps(get)
        def get_rng_state(*args: Any, **kwargs: Any) -> Any:
            state = get(*args, **kwargs)
            generator = generator_of(*args, **kwargs)
            if generator is None:
                return state
            states = self._states.of(generator)
            return self._torch.cat([state, *(self._state(generator, states, stream) for stream in PARTED)])

        @functools.wraps(put)
        def set_rng_state(new_state: Any, *args: Any, **kwargs: Any) -> Any:
            generator = generator_of(*args, **kwargs)
            size = 0 if generator is None else generator.get_state().numel()
            if generator is None or new_state.numel() != size * (len(PARTED) + 1):
                return put(new_state[:size] if size else new_state, *args, **kwargs)
            own, *states = new_state.split(size)
            result = put(own.clone(), *args, **kwargs)
            kept = self._states.of(generator)
            kept.clear()
            kept.update({stream: state.clone() for stream, state in zip(PARTED, states)})
            return result

        owner.get_rng_state, owner.set_rng_state = get_rng_state, set_rng_state
