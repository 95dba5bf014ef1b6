"""JAX has no global generator: the training makes its keys itself."""

from __future__ import annotations

import atexit
import os
import sys
from types import ModuleType
from typing import ClassVar, Mapping

from .. import seeding
from ..levels import Settings, this_cpu_flags
from ..recorder import Recorder, guarded
from .base import NOT_FOLLOWED, NVIDIA, Framework, threads_named

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
    undigested = NOT_FOLLOWED
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
                seeding.take_calls(module, call, f"jax.random.{call}", kind)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:
        """Tell the reader that the seed reaches JAX only through the training's own code.

        What is to be done at the end was registered after JAX's own, and so comes before it.
        """
        if name == "jax":
            atexit.register(guarded(recorder.folder, "asking JAX", self._remember), module)
            if settings.fixes_kernels:
                from ..answering import Answers  # other levels do without

                Answers(recorder).tell(module.config, "update", "jax.config", lambda name, *_: name in _SETTINGS)
        if name == "jax" and settings.seed is not None and not settings.takes_seeds:
            recorder.note("jax-keys", "JAX has no global seed: make keys from the environment variable ISORUN_SEED")


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


FRAMEWORKS = (Jax(),)
