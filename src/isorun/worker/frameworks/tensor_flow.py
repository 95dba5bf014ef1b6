"""TensorFlow and Keras: the global seed, deterministic operations and threads.

Keras needs no seeding of its own. Keras 3 draws the seeds of its layers and initialisers from Python's generator, Keras
2 from TensorFlow's; both are seeded. `keras.utils.set_random_seed` would restart streams the training may have used.

What is trained is seen where it is asked for, before the first step and never in one: an optimizer of Keras 3 is built
for its variables, whatever the backend, and a gradient tape is asked for gradients by variables, by Keras 2 as well.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, ClassVar, FrozenSet, Mapping

from .. import answering, reaching, seeding
from ..levels import Settings
from ..recorder import Recorder, guarded
from .base import NVIDIA, Framework, InTurns, Watch

if TYPE_CHECKING:
    from ..watching import Watcher

_THREADS = ("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads")


class TensorFlow(Framework):
    """TensorFlow; it starts threads when imported, so no fork server imports it."""

    name = "tensorflow"
    has_generators = True
    undigested = "no gradient by variables was asked of a tape in this process; isorun.digest does any"
    global_seed_calls = ("tensorflow.random.set_seed",)
    seeding_names: ClassVar[Mapping[str, str]] = {"from_seed": "tensorflow.random.Generator.from_seed"}
    libraries = f"libtensorflow|{NVIDIA}"
    generated_files = ("__autograph_generated_file",)
    thread_variables = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    told_variables = (*thread_variables, "TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS", "TF_CUDNN_USE_AUTOTUNE")

    def variables(self, cpu_flags: FrozenSet[str]) -> dict[str, str]:  # noqa: ARG002
        """What TensorFlow reads before it can be told."""
        return {"TF_DETERMINISTIC_OPS": "1", "TF_CUDNN_DETERMINISTIC": "1"}

    def is_as_strict(self, name: str, value: str) -> bool:
        """TensorFlow takes words for the number."""
        return name in self.variables(frozenset()) and value.lower() in {"1", "true"}

    def switch_variables(self, asked: Mapping[str, str]) -> dict[str, str]:
        """OneDNN, and whether cuDNN's kernels are chosen by time, are read before TensorFlow can be told."""
        onednn = {"on": "1", "off": "0"}.get(asked.get("onednn", ""))
        autotune = {"on": "0", "benchmark": "1"}.get(asked.get("cudnn", ""))
        fixed = "1" if asked.get("kernels") == "deterministic" else None
        wanted = {
            "TF_ENABLE_ONEDNN_OPTS": onednn,
            "TF_CUDNN_USE_AUTOTUNE": autotune,
            "TF_DETERMINISTIC_OPS": fixed,
            "TF_CUDNN_DETERMINISTIC": fixed,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def switch(self, module: ModuleType, asked: Mapping[str, str]) -> None:
        """TF32 and deterministic operations are settings of their own."""
        if asked.get("kernels") == "deterministic":
            module.config.experimental.enable_op_determinism()
        if "tf32" in asked:
            module.config.experimental.enable_tensor_float_32_execution(asked["tf32"] == "on")

    def answers(self, module: ModuleType) -> dict[str, str]:
        """OneDNN as it says itself; threads by its rule, since it says 0 unless the training set their number."""
        from importlib import import_module

        uses_onednn = import_module("tensorflow.python.util._pywrap_util_port").IsMklEnabled()
        fixed = import_module("tensorflow.python.framework.config").is_op_determinism_enabled()
        return {
            "onednn": "on" if uses_onednn else "off",
            "kernels": "deterministic" if fixed else "free",
            "threads": str(_threads(module, "intra")),
        }

    def take_seeds(self, name: str, module: ModuleType) -> None:  # noqa: ARG002
        """Reach the global generator and generators of one's own, also one that asks for fresh entropy."""
        kind = seeding.Kind("tensorflow", seeding.whole_number)
        reaching.take_calls(module.random, "set_seed", "tensorflow.random.set_seed", kind)
        for former in (module.compat.v1, module.compat.v1.random):
            reaching.take_calls(former, "set_random_seed", "tensorflow.random.set_seed", kind)
        generator = module.random.Generator
        reaching.take_calls(generator, "from_seed", "tensorflow.random.Generator.from_seed", kind)
        fresh = "from_non_deterministic_state"
        reaching.take_fresh(generator, fresh, f"tensorflow.random.Generator.{fresh}", kind, generator.from_seed)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch:  # noqa: ARG002
        """Set what the level says, notice when the training sets the seed itself, and follow what it trains."""
        if settings.seed is not None:
            module.random.set_seed(settings.seed)
            seeding.seed_processes("tensorflow.random.set_seed", module.random.set_seed, settings.seed)
        if settings.fixes_kernels:
            module.config.experimental.enable_op_determinism()
            answers, tf32 = answering.Answers(recorder), "enable_tensor_float_32_execution"
            answers.tell(module.config.experimental, tf32, f"tensorflow.config.experimental.{tf32}")
            for call in ("set_jit", "set_experimental_options"):
                answers.tell(module.config.optimizer, call, f"tensorflow.config.optimizer.{call}")
            guarded(recorder.folder, "giving a global generator", _give_global_generator)(module)
        if settings.threads is not None:
            guarded(recorder.folder, "fixing TensorFlow's threads", _fix_threads)(module, settings.threads, recorder)
        if not settings.takes_seeds:
            reaching.watch_calls(module.random, "set_seed", "tensorflow.random.set_seed", recorder)
        watch = TrainedVariables("tensorflow", recorder)
        guarded(recorder.folder, "following gradient tapes", _follow_tapes)(module, watch)
        return watch

    def effective(self, module: ModuleType) -> dict[str, Any]:
        """The version, and how many threads share an operation, and how many operations there are at once."""
        return {
            "version": str(module.__version__),
            "intra_op_parallelism": _threads(module, "intra"),
            "inter_op_parallelism": _threads(module, "inter"),
        }


def _threads(tensorflow: ModuleType, which: str) -> int:
    """How many it has: what the training set, else what its variable says, else as many as there are CPUs.

    TensorFlow says 0 for the last two. Its threads within an operation have no name to count them by.
    """
    told: int = getattr(tensorflow.config.threading, f"get_{which}_op_parallelism_threads")()
    asked = os.environ.get(f"TF_NUM_{which.upper()}OP_THREADS", "")
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return told or (int(asked) if asked.isascii() and asked.isdigit() else 0) or here


def _fix_threads(tensorflow: ModuleType, threads: int, recorder: Recorder) -> None:
    answers = answering.Answers(recorder)
    for name in _THREADS:
        getattr(tensorflow.config.threading, name)(threads)
        answers.answer(tensorflow.config.threading, name, f"tensorflow.config.threading.{name}", threads)


class TrainedVariables(Watch):
    """Sets of variables that are trained; they are kept, since a model may be gone when the training ends."""

    def __init__(self, framework: str, recorder: Recorder) -> None:
        _followed[framework] = self
        self._framework = framework
        self._recorder = recorder
        self._sets = InTurns(_self, lambda variables: variables[0])

    @property
    def is_used(self) -> bool:
        """Whether it has seen any."""
        return bool(self._sets.told())

    def follow(self, variables: list[Any]) -> None:
        """These are about to be trained; by their first one they are known."""
        first = variables[0]
        if self._sets.holds(first):
            self._sets.comes(first, variables)
        elif not self._recorder.is_forked_child and not self._recorder.rank:
            guarded(self._recorder.folder, "digest of the initial weights", self._start)(variables)

    def _start(self, variables: list[Any]) -> None:
        tensorflow = sys.modules.get("tensorflow")
        # A step is traced as a graph, in which variables have no values.
        with contextlib.nullcontext() if tensorflow is None else tensorflow.init_scope():
            self._sets.comes(variables[0], variables)
            self._recorder.started(variables)

    def finish(self) -> None:
        """Digest them. A tape is asked for the variables of Keras' optimizers, too: those are told once."""
        by_keras, told = _followed.get("keras", self), self._sets.told()
        if told and (by_keras is self or not by_keras.is_used):
            self._recorder.trained(self._framework, told if told[1:] else told[0])


def _self(variables: list[Any]) -> list[Any]:
    return variables


_followed: dict[str, TrainedVariables] = {}


def _follow_builds(base: Any, watch: TrainedVariables) -> None:
    """Keras calls this once for an optimizer, before its first step and before it compiles one."""
    build = base.build

    @functools.wraps(build)
    def told(self: Any, variables: Any, *args: Any, **kwargs: Any) -> Any:
        result = build(self, variables, *args, **kwargs)
        if variables:
            watch.follow(list(variables))
        return result

    base.build = told


def _follow_fits(model: Any, watch: TrainedVariables) -> None:
    """`fit` and `train_on_batch` call this each time: one of several models in turns goes on after others have come."""
    trainer = next((each for each in model.__mro__ if "make_train_function" in each.__dict__), None)
    if trainer is None:
        return
    make = trainer.make_train_function

    @functools.wraps(make)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        variables = getattr(getattr(self, "optimizer", None), "_trainable_variables", None)
        if variables:
            watch.follow(list(variables))
        return make(self, *args, **kwargs)

    trainer.make_train_function = told


def _follow_tapes(tensorflow: ModuleType, watch: TrainedVariables) -> None:
    tape: Any = tensorflow.GradientTape
    gradient: Callable[..., Any] = tape.gradient

    @functools.wraps(gradient)
    def told(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(sources, (list, tuple)) and sources and hasattr(sources[0], "assign"):
            watch.follow(list(sources))
        return gradient(self, target, sources, *args, **kwargs)

    tape.gradient = told


def _give_global_generator(tensorflow: ModuleType) -> None:
    """Where operations are deterministic TensorFlow refuses to make one of fresh entropy: it is given one before."""
    hidden: Any = importlib.import_module("tensorflow.python.ops.stateful_random_ops")
    original = hidden.get_global_generator

    @functools.wraps(original)
    def given() -> Any:
        if hidden.global_generator is None:
            with tensorflow.init_scope():
                hidden.set_global_generator(tensorflow.random.Generator.from_non_deterministic_state())
        return original()

    for owner in (hidden, tensorflow.random, getattr(tensorflow.random, "experimental", hidden)):
        owner.get_global_generator = given


class Keras(Framework):
    """Keras 3 has generators of its own; Keras 2 has none, and its initializers are left to it."""

    name = "keras"
    has_generators = True
    undigested = "no optimizer was built for variables in this process; isorun.digest does any"
    seeding_names: ClassVar[Mapping[str, str]] = {
        "set_random_seed": "set_random_seed",
        "SeedGenerator": "keras.random.SeedGenerator",
    }

    def take_seeds(self, name: str, module: ModuleType) -> None:  # noqa: ARG002
        """Reach constants given to a SeedGenerator, as layers make one of their `seed`, or to an initializer.

        Without a seed both draw one from Python's generator, which the level has seeded.
        """
        generator = getattr(getattr(module, "random", None), "SeedGenerator", None)
        if generator is None:
            return
        kind = seeding.Kind("keras", seeding.whole_number)
        reaching.take_calls(generator, "__init__", "keras.random.SeedGenerator", kind, position=1)
        for base in module.initializers.RandomNormal.__mro__:
            if base.__name__ == "RandomInitializer":
                reaching.take_calls(base, "__init__", "keras.initializers", kind, position=1)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch | None:  # noqa: ARG002
        """Follow the optimizers of Keras 3; what those of Keras 2 train a gradient tape is asked for."""
        base = next((each for each in module.optimizers.Optimizer.__mro__ if "_var_key" in each.__dict__), None)
        if base is None or not hasattr(module, "ops"):
            return None
        watch = TrainedVariables("keras", recorder)
        _follow_builds(base, watch)
        guarded(recorder.folder, "following fit", _follow_fits)(module.Model, watch)
        return watch

    def children(self, value: Any) -> dict[Any, Any] | None:
        """The weights of a model or layer."""
        return dict(enumerate(value.get_weights())) if callable(getattr(value, "get_weights", None)) else None

    def probe(self, module: ModuleType, model: Any, watcher: Watcher) -> Any | None:
        """What is computed in the optimizer while `fit` trains; Keras 2 has no code for all backends."""
        if not hasattr(module, "ops") or not isinstance(model, module.Model):
            return None
        from .probes.keras import KerasProbe  # only watched trainings need it

        return KerasProbe(module, model, watcher)


FRAMEWORKS = (TensorFlow(), Keras())
