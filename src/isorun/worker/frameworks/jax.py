"""JAX has no global generator: the training makes its keys itself. Nor has it objects that are trained.

A training step is a function that gives back new weights, compiled as a rule. What `jax.jit` makes is wrapped in
memory: a function that updates weights (optax's or equinox' `apply_updates`, or a gradient where neither is imported)
while it is traced trains, and what it gave back last is what was trained. Outside of compiled functions it is what
`apply_updates` gave back last.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from types import ModuleType
from typing import Any, Callable, ClassVar, Mapping

from .. import reaching, seeding
from ..levels import Settings, this_cpu_flags
from ..recorder import Recorder, guarded
from .base import NVIDIA, Framework, Hash, InTurns, Watch, framed, threads_named

_XLA_FLAG = "--xla_gpu_deterministic_ops=true"
# XLA's flag for the widest instructions that it compiles to. A flag that XLA does not know ends the process, so that it
# is set for versions alone that are sure to have it, and in the training, where the version is known.
_WIDEST_FLAG = "--xla_cpu_max_isa="
_HAS_WIDEST_FLAG = (0, 5)
_WIDEST = {"baseline": "SSE4_2", "avx2": "AVX2", "avx512": "AVX512"}
# The threads that XLA computes with on the CPU: as many as PJRT_NPROC says, else as there are CPUs.
_THREADS = "tf_XLAEigen"
# Settings that change what is computed, and not whether that repeats.
_SETTINGS = (
    *("jax_default_matmul_precision", "jax_enable_x64", "jax_default_prng_impl", "jax_threefry_partitionable"),
    *("jax_numpy_dtype_promotion", "jax_default_dtype_bits", "jax_platforms", "jax_platform_name"),
)


class Jax(Framework):
    """JAX and flax; JAX starts threads when imported, so no fork server imports it."""

    name = "jax"
    has_generators = True
    undigested = (
        "no function that jax.jit made was seen to update weights, nor optax to do so outside of one; "
        "isorun.digest does any"
    )
    seeding_names: ClassVar[Mapping[str, str]] = {"PRNGKey": "jax.random.PRNGKey", "Rngs": "flax.nnx.Rngs"}
    libraries = f"xla|{NVIDIA}"
    thread_variables = ("PJRT_NPROC",)
    told_variables = ("XLA_FLAGS", "PJRT_NPROC", *(name.upper() for name in _SETTINGS))

    def __init__(self) -> None:
        self._had: dict[str, str] = {}

    def flags(self, base_env: Mapping[str, str]) -> dict[str, str]:
        """XLA's flags are one variable for all: ours joins the user's."""
        flags = base_env.get("XLA_FLAGS", "")
        return {} if "xla_gpu_deterministic_ops" in flags else {"XLA_FLAGS": f"{flags} {_XLA_FLAG}".strip()}

    def is_as_strict(self, name: str, value: str) -> bool:
        """Other flags beside the level's."""
        return name == "XLA_FLAGS" and _XLA_FLAG in value.split()

    def switch_variables(self, asked: Mapping[str, str]) -> dict[str, str]:
        """JAX computes on the CPU where it is told so, and takes a precision for products."""
        platform = {"JAX_PLATFORMS": "cpu"} if asked.get("device") == "cpu" else {}
        precision = {"on": "tensorfloat32", "off": "highest"}.get(asked.get("tf32", ""))
        flags = self.flags(os.environ) if asked.get("kernels") == "deterministic" else {}
        return {**platform, **flags, **({"JAX_DEFAULT_MATMUL_PRECISION": precision} if precision else {})}

    def switch(self, module: ModuleType, asked: Mapping[str, str]) -> None:
        """The widest instructions, before XLA reads its flags: at the first computation, not at the import."""
        flags, widest = os.environ.get("XLA_FLAGS", ""), _WIDEST.get(asked.get("cpu", ""))
        if widest and _WIDEST_FLAG not in flags and module.__version_info__ >= _HAS_WIDEST_FLAG:
            os.environ["XLA_FLAGS"] = f"{flags} {_WIDEST_FLAG}{widest}".strip()

    def answers(self, module: ModuleType) -> dict[str, str]:
        """Where it computed, once it has started a device; there the precision of products, else threads and path.

        JAX lets go of its devices before a training's last lines of all, so that what it had then is remembered.
        """
        bridge = sys.modules.get("jax._src.xla_bridge")
        if bridge is None or not bridge.backends_are_initialized():
            return dict(self._had)
        device = {"gpu": "cuda"}.get(module.default_backend(), module.default_backend())
        precision = module.config.jax_default_matmul_precision
        tf32 = {"tensorfloat32": "on", "highest": "off"}.get(str(precision), "in part")
        if device != "cuda":
            threads, widest = threads_named(_THREADS), _widest(os.environ.get("XLA_FLAGS", ""))
            return {
                "device": device,
                **({"threads": str(threads)} if threads else {}),
                **({"cpu": widest} if widest else {}),
            }
        fixed = _XLA_FLAG in os.environ.get("XLA_FLAGS", "").split()
        return {"device": device, "tf32": tf32, "kernels": "deterministic" if fixed else "free"}

    def _remember(self, module: ModuleType) -> None:
        self._had = self.answers(module)

    def constant_seed(self, called: str) -> str | None:
        """`jax.random.key`, whose last part alone says too little."""
        return "jax.random.key" if called.endswith("random.key") else super().constant_seed(called)

    def take_seeds(self, name: str, module: ModuleType) -> None:
        """Reach constants that keys are made of; flax and others make theirs by the same functions."""
        if name == "jax.random":
            kind = seeding.Kind("jax", seeding.whole_number)
            for call in ("key", "PRNGKey"):
                reaching.take_calls(module, call, f"jax.random.{call}", kind)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch | None:
        """Tell the reader that the seed reaches JAX only through the training's own code, and follow what trains.

        What is to be done at the end was registered after JAX's own, and so comes before it.
        """
        watch = None
        if name == "jax":
            atexit.register(guarded(recorder.folder, "asking JAX", self._remember), module)
            watch = guarded(recorder.folder, "following jax.jit", _follow)(module, recorder)
            if settings.fixes_kernels:
                from ..answering import Answers  # other levels do without

                Answers(recorder).tell(module.config, "update", "jax.config", _is_told)
        if name == "jax" and settings.seed is not None and not settings.takes_seeds:
            recorder.note("jax-keys", "JAX has no global seed: make keys from the environment variable ISORUN_SEED")
        return watch

    def hash_array(self, update: Hash, name: str, value: Any) -> bool:
        """Keys have numbers, but are no array to NumPy; all else is one."""
        jax = sys.modules.get("jax")
        kind = str(getattr(value, "dtype", "")) if type(value).__module__.startswith("jax") else ""
        if jax is None or not kind.startswith("key<"):
            return False
        framed(update, name, kind)
        update(jax.random.key_data(value).__array__().tobytes())
        return True


class Updating(Framework):
    """A library whose `apply_updates` gives back new weights."""

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG002
        """Follow the function, which those who import it from now on get."""
        if _states is not None and not hasattr(module.apply_updates, "tells_isorun"):
            _states.updates_apart = True
            setattr(module, "apply_updates", _telling_update(module.apply_updates))  # noqa: B010  of any module


class Optax(Updating):
    """optax, and what stands on it: flax' states and optimizers."""

    name = "optax"


class Equinox(Updating):
    """Equinox."""

    name = "equinox"


class TrainedStates(Watch):
    """What training steps gave back last.

    updates_apart: whether a library is imported that updates weights; then a gradient alone is no training step.
    """

    def __init__(self, jax: ModuleType, recorder: Recorder) -> None:
        self.updates_apart = False
        self.now = threading.local()
        self._jax = jax
        self._recorder = recorder
        self._steps = InTurns(self._states_of, rest=lambda step: step.rest())
        self._updated: Any = None
        self._is_done = False

    def counted(self) -> int:
        """How many updates of weights this thread has traced, or made."""
        return getattr(self.now, "updates", 0)

    def updates(self, weights: Any = None) -> None:
        """Weights are updated, or a gradient is taken for it; kept where that is no part of a compiled function."""
        self.now.updates = self.counted() + 1
        if weights is not None and not getattr(self.now, "depth", 0):
            self._updated = weights

    def follows(self, step: CompiledStep) -> bool:
        """Whether it is known that this trains."""
        return self._steps.holds(step)

    def trains(self, step: CompiledStep, args: Any, given: Any) -> None:
        """A compiled function was seen to train for the first time, or again after others have."""
        step.places = _places(self._jax, args, given)
        self._steps.comes(step, step)
        before = [args[place] for place in step.places.values() if not _gone(self._arrays(args[place]))]
        if before and not self._is_traced(before) and len(before) == len(step.places):
            self._recorder.started([self._arrays(_weights(one)) for one in before])

    def finish(self) -> None:
        """Digest them; once, because JAX has let go of its arrays when the other frameworks are asked."""
        if self._is_done or self._recorder.is_forked_child or self._recorder.rank:
            return
        self._is_done = True
        told = self._steps.told()
        states = [state for one in told for state in (one if isinstance(one, list) else [one])]
        if self._updated is not None:
            states.append(self._arrays(self._updated))
        kept = [state for state in states if state and not self._is_traced(state)]
        if not kept or ("keras" in sys.modules and any(isinstance(one, dict) and _gone(one) for one in kept)):
            return  # Keras gives arrays away that its variables had, and knows those that they have now
        self._recorder.trained("jax", kept)

    def _states_of(self, step: CompiledStep) -> list[Any]:
        states = [self._arrays(_weights(state)) for state in step.states()]
        return [state for state in states if state and not self._is_traced(state)]

    def _arrays(self, tree: Any) -> dict[str, Any]:
        """The arrays of any tree by their place in it; functions and settings, which are leaves for some, left out."""
        told, flat = self._jax.tree_util.keystr, self._jax.tree_util.tree_flatten_with_path(tree)[0]
        return {told(path): leaf for path, leaf in flat if hasattr(leaf, "dtype") and hasattr(leaf, "shape")}

    def _is_traced(self, tree: Any) -> bool:
        return any(isinstance(leaf, self._jax.core.Tracer) for leaf in self._jax.tree_util.tree_leaves(tree))


class CompiledStep:
    """A compiled function. trains: whether it does. places: which part of what it gives back follows which argument.

    Where nothing of it looks like an argument, all that it gives back is kept: a whole training may be one function.
    """

    def __init__(self) -> None:
        self.trains = False
        self.places: dict[int, int] = {}
        self._given: Any = None

    def gave(self, given: Any) -> None:
        """Keep what the training keeps, too, and nothing else: memory of a device is scarce."""
        places = self.places
        if places and isinstance(given, (tuple, list)) and -1 not in places:
            self._given = [given[place] for place in places]
        else:
            self._given = [given]

    def states(self) -> list[Any]:
        """What was given back last."""
        return self._given or []

    def rest(self) -> None:
        """Others have come, and this one lets go of what it gave back; it is followed again once it is called."""
        self._given = None


_states: TrainedStates | None = None


def _follow(jax: ModuleType, recorder: Recorder) -> TrainedStates:
    global _states  # noqa: PLW0603  one a process
    _states = TrainedStates(jax, recorder)
    for name in ("jit", "pmap"):
        setattr(jax, name, _telling_compiler(getattr(jax, name)))
    for name in ("grad", "value_and_grad"):
        setattr(jax, name, _telling_gradient(getattr(jax, name)))
    atexit.register(guarded(recorder.folder, "digest of the final weights", _states.finish))
    return _states


def _telling_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit`, whose functions tell what they give back if they train; used as a decorator with options, too."""

    @functools.wraps(compiler)
    def told(*args: Any, **options: Any) -> Any:
        made = compiler(*args, **options)
        if not args:
            return lambda function: _telling_step(made(function))
        return _telling_step(made)

    return told


def _telling_step(compiled: Any) -> Any:
    states, step = _states, CompiledStep()
    if states is None:
        return compiled
    now = states.now

    @functools.wraps(compiled)
    def told(*args: Any, **kwargs: Any) -> Any:
        if getattr(now, "depth", 0):
            return compiled(*args, **kwargs)
        before, now.depth = getattr(now, "updates", 0), 1
        try:
            given = compiled(*args, **kwargs)
        finally:
            now.depth = 0
        step.trains = step.trains or getattr(now, "updates", 0) != before
        if step.trains:
            if not states.follows(step):
                states.trains(step, args, given)
            step.gave(given)
        return given

    for name in dir(compiled):  # lowering, caches: all that is asked of a compiled function
        if not name.startswith("__"):
            setattr(told, name, getattr(compiled, name))
    told.__wrapped__ = getattr(compiled, "__wrapped__", compiled)
    return told


def _telling_gradient(gradient: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(gradient)
    def told(*args: Any, **options: Any) -> Any:
        made = gradient(*args, **options)

        @functools.wraps(made)
        def taken(*inputs: Any, **named: Any) -> Any:
            if _states is not None and not _states.updates_apart:
                _states.updates()
            return made(*inputs, **named)

        return taken

    return told


def _telling_update(update: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(update)
    def told(*args: Any, **kwargs: Any) -> Any:
        weights = update(*args, **kwargs)
        if _states is not None:
            _states.updates(weights)
        return weights

    told.tells_isorun = True  # type: ignore[attr-defined]
    return told


def _places(jax: ModuleType, args: Any, given: Any) -> dict[int, int]:
    """By place among what a step gives back (-1: it gives back one thing), the argument that has the same arrays."""
    shapes = [_shapes(jax, arg) for arg in args]
    several = isinstance(given, (tuple, list)) and not hasattr(given, "_fields")
    parts = dict(enumerate(given)) if several and _shapes(jax, given) not in shapes else {-1: given}
    found: dict[int, int] = {}
    for place, part in parts.items():
        looks = _shapes(jax, part)
        alike = [arg for arg, shape in enumerate(shapes) if shape == looks and arg not in found.values()]
        if alike and looks[1] and not _is_optimizers(part):
            found[place] = alike[0]
    return found


def _shapes(jax: ModuleType, tree: Any) -> tuple[Any, list[Any]]:
    leaves, structure = jax.tree_util.tree_flatten(tree)
    return structure, [getattr(leaf, "shape", ()) for leaf in leaves]  # a count may be a plain number at first


def _is_optimizers(part: Any) -> bool:
    """Whether it is what an optimizer keeps for itself: moments, counts."""
    kinds = {type(one).__module__ for one in part} if type(part) is tuple else {type(part).__module__}
    return bool(kinds) and all(kind.startswith("optax.") for kind in kinds)


def _weights(state: Any) -> Any:
    """Of a state that holds an optimizer's, too, what is trained."""
    return getattr(state, "params", state)


def _gone(arrays: Mapping[str, Any]) -> bool:
    """Whether memory of an array was given away."""
    return any(callable(getattr(one, "is_deleted", None)) and one.is_deleted() for one in arrays.values())


def _is_told(name: str, *_args: Any, **_options: Any) -> bool:
    """Whether a setting changes what is computed."""
    return name in _SETTINGS


def _widest(flags: str) -> str:
    """What the code that XLA compiles here may use: all that the processor has, up to its flag. Empty: not known."""
    has = this_cpu_flags()
    if not has:
        return ""
    order = list(_WIDEST)
    here = "avx512" if "avx512f" in has else "avx2" if "avx2" in has else "baseline"
    asked = [flag[len(_WIDEST_FLAG) :] for flag in flags.split() if flag.startswith(_WIDEST_FLAG)]
    capped = {"SSE4_2": "baseline", "AVX": "baseline", "AVX2": "avx2"}.get(asked[-1], here) if asked else here
    return min(here, capped, key=order.index)


FRAMEWORKS = (Jax(), Optax(), Equinox())
