"""Python's own generators: the one of the module `random`, and those that a training makes of `Random`."""

from __future__ import annotations

import operator
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Mapping

from .. import reaching, seeding
from ..levels import Settings
from ..recorder import Recorder
from .base import Framework

if TYPE_CHECKING:
    from ..auditing import Sight
    from ..streams import Streams

_DRAWS = ("random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "gauss", "getrandbits")


class Python(Framework):
    """The module `random`."""

    name = "random"
    global_seed_calls = ("random.seed",)
    seeding_names: ClassVar[Mapping[str, str]] = {"Random": "random.Random"}

    def take_seeds(self, name: str, module: ModuleType) -> None:  # noqa: ARG002
        """Reach the module's generator, and generators of one's own, which `Random.seed` seeds."""
        kind = seeding.Kind("random", constant)
        reaching.take_calls(module, "seed", "random.seed", kind, keyword="a", may_lack=True)
        reaching.take_calls(module.Random, "seed", "random.Random", kind, keyword="a", position=1, may_lack=True)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG002
        """Seed it as the level says, and notice when the training does."""
        if settings.seed is not None:
            module.seed(settings.seed)
            seeding.seed_processes("random.seed", module.seed, settings.seed, asks_when_forked=True)
        elif settings.warm:
            module.seed()  # a forked child would otherwise share its parent's stream with all its siblings
        if not settings.takes_seeds:
            reaching.watch_calls(module, "seed", "random.seed", recorder)

    def part_streams(self, name: str, module: ModuleType, streams: Streams) -> None:  # noqa: ARG002
        """All functions of the module are methods of its generator."""
        from ..streams import part_functions

        module.seed(streams.request.kept_seed)
        hidden, kept = module.random.__self__, ("seed", "getstate", "setstate")
        methods = (each for each in dir(module) if getattr(getattr(module, each), "__self__", None) is hidden)
        part_functions(streams, module, {each: each for each in methods if each not in kept}, "random", module.Random)
        streams.out_of_sight.append(lambda: _drawn_unseen(module, hidden, streams))

    def answers(self, module: ModuleType) -> dict[str, str]:  # noqa: ARG002
        """Which random streams follow the seed, where no framework has generators of its own: else that one says it."""
        from . import imported

        parted = sys.modules.get(f"{__package__.rpartition('.')[0]}.streams")
        if parted is None or parted.active() is None or any(framework.has_generators for framework, _ in imported()):
            return {}
        return {"streams": str(parted.active().answer())}

    def look(self, name: str, module: ModuleType, sight: Sight) -> None:  # noqa: ARG002
        """Notice the first draw from the module's generator."""
        sight.keep_state("random", module.getstate)
        for function in _DRAWS:
            sight.note_draws(module, function, "random")


def _drawn_unseen(module: ModuleType, hidden: Any, streams: Streams) -> str:
    """Who holds the hidden generator itself draws from it, as it stands."""
    with seeding.suspended():
        seeded = module.Random(streams.value_of("random"))
    return "" if hidden.getstate()[1] == seeded.getstate()[1] else "random"


def constant(value: Any) -> Any:
    """What Python makes of a seed: the size of a number, the hash of a fraction, the bytes of a text."""
    if isinstance(value, int):
        return abs(int(value))
    if isinstance(value, float):
        return hash(value) % 2**64
    if isinstance(value, (str, bytes, bytearray)):
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    is_refused = sys.version_info >= (3, 11)
    return None if is_refused or not hasattr(value, "__index__") else abs(operator.index(value))


FRAMEWORKS = (Python(),)
