"""JAX has no global generator: the training makes its keys itself."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import ClassVar, Mapping

from .. import seeding
from ..levels import Settings
from ..recorder import Recorder
from .base import NOT_FOLLOWED, NVIDIA, Framework

_XLA_FLAG = "--xla_gpu_deterministic_ops=true"


class Jax(Framework):
    """JAX and flax; JAX starts threads when imported, so no fork server imports it."""

    name = "jax"
    has_generators = True
    undigested = NOT_FOLLOWED
    seeding_names: ClassVar[Mapping[str, str]] = {"PRNGKey": "jax.random.PRNGKey", "Rngs": "flax.nnx.Rngs"}
    libraries = f"xla|{NVIDIA}"

    def flags(self, base_env: Mapping[str, str]) -> dict[str, str]:
        """XLA's flags are one variable for all: ours joins the user's."""
        flags = base_env.get("XLA_FLAGS", "")
        return {} if "xla_gpu_deterministic_ops" in flags else {"XLA_FLAGS": f"{flags} {_XLA_FLAG}".strip()}

    def switch_variables(self, asked: Mapping[str, str]) -> dict[str, str]:
        """JAX computes on the CPU where it is told so, and takes a precision for products."""
        platform = {"JAX_PLATFORMS": "cpu"} if asked.get("device") == "cpu" else {}
        precision = {"on": "tensorfloat32", "off": "highest"}.get(asked.get("tf32", ""))
        flags = self.flags(os.environ) if asked.get("kernels") == "deterministic" else {}
        return {**platform, **flags, **({"JAX_DEFAULT_MATMUL_PRECISION": precision} if precision else {})}

    def answers(self, module: ModuleType) -> dict[str, str]:
        """Where it computed, once it has started a device; the precision of products only there."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        if bridge is None or not bridge.backends_are_initialized():
            return {}
        device = {"gpu": "cuda"}.get(module.default_backend(), module.default_backend())
        precision = module.config.jax_default_matmul_precision
        tf32 = {"tensorfloat32": "on", "highest": "off"}.get(str(precision), "in part")
        if device != "cuda":
            return {"device": device}
        fixed = _XLA_FLAG in os.environ.get("XLA_FLAGS", "").split()
        return {"device": device, "tf32": tf32, "kernels": "deterministic" if fixed else "free"}

    def constant_seed(self, called: str) -> str | None:
        """`jax.random.key`, whose last part alone says too little."""
        return "jax.random.key" if called.endswith("random.key") else super().constant_seed(called)

    def take_seeds(self, name: str, module: ModuleType) -> None:
        """Reach constants that keys are made of; flax and others make theirs by the same functions."""
        if name == "jax.random":
            kind = seeding.Kind("jax", seeding.whole_number)
            for call in ("key", "PRNGKey"):
                seeding.take_calls(module, call, f"jax.random.{call}", kind)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG002
        """Tell the reader that the seed reaches JAX only through the training's own code."""
        if name == "jax" and settings.seed is not None and not settings.takes_seeds:
            recorder.note("jax-keys", "JAX has no global seed: make keys from the environment variable ISORUN_SEED")


FRAMEWORKS = (Jax(),)
