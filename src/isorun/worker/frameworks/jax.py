"""JAX has no global generator: the training makes its keys itself."""

from __future__ import annotations

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
    undigested = NOT_FOLLOWED
    seeding_names: ClassVar[Mapping[str, str]] = {"PRNGKey": "jax.random.PRNGKey", "Rngs": "flax.nnx.Rngs"}
    libraries = f"xla|{NVIDIA}"

    def flags(self, base_env: Mapping[str, str]) -> dict[str, str]:
        """XLA's flags are one variable for all: ours joins the user's."""
        flags = base_env.get("XLA_FLAGS", "")
        return {} if "xla_gpu_deterministic_ops" in flags else {"XLA_FLAGS": f"{flags} {_XLA_FLAG}".strip()}

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
