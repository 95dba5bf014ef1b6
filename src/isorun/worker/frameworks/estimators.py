"""What stands on arrays: scikit-learn, which draws from NumPy, and those that draw in compiled code of their own.

The boosters have seeds that no call shows; polars and numba a generator of the whole process, which can be seeded.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from .. import seeding
from ..levels import Settings
from ..recorder import Recorder
from .base import NOT_FOLLOWED, Framework

_WITHOUT_WEIGHTS = ("n_jobs", "verbose", "feature_names_in_")


class ScikitLearn(Framework):
    """Without a `random_state` its estimators draw from NumPy's global generator, which the level has seeded."""

    name = "sklearn"
    undigested = NOT_FOLLOWED
    safe_to_preload = ("sklearn",)

    def children(self, value: Any) -> dict[Any, Any] | None:
        """All that an estimator of its own holds, which settings are a part of, and the parts of a tree.

        Some hold their parts in settings, others where no attribute shows them. What cannot be seen has no digest.
        """
        module = sys.modules.get("sklearn.base")
        known = type(value).__module__
        if module is not None and known.startswith("sklearn.") and isinstance(value, module.BaseEstimator):
            return {key: held for key, held in sorted(vars(value).items()) if key not in _WITHOUT_WEIGHTS}
        if known == "sklearn.tree._tree":
            state: dict[Any, Any] = value.__getstate__()
            return state
        return None


class Booster(Framework):
    """A booster: its random numbers come from settings such as `seed`, which only its own code reads."""

    undigested = NOT_FOLLOWED

    def left_open(self, module: ModuleType) -> list[str]:  # noqa: ARG002
        """Sums over threads, and seeds that no call shows."""
        return [f"{self.name}: it draws and sums in code of its own, which the level does not reach"]

    def children(self, value: Any) -> dict[Any, Any] | None:
        """The trees as the library writes them; None for what is no fitted model of it."""
        if type(value).__module__.partition(".")[0] != self.name:
            return None
        text = self.written(value)
        return None if text is None else {"model": text}

    def written(self, model: Any) -> Any:
        """The model as text or bytes; None where it cannot be had."""
        raise NotImplementedError


class XGBoost(Booster):
    """XGBoost."""

    name = "xgboost"
    native = ("xgb",)

    def written(self, model: Any) -> Any:
        """The booster, of whichever interface."""
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        return bytes(booster.save_raw()) if hasattr(booster, "save_raw") else None


class LightGBM(Booster):
    """LightGBM."""

    name = "lightgbm"
    native = ("lgb", "lightgbm")

    def written(self, model: Any) -> Any:
        """The booster, of whichever interface."""
        booster = getattr(model, "booster_", model)
        return booster.model_to_string() if hasattr(booster, "model_to_string") else None


class CatBoost(Booster):
    """CatBoost."""

    name = "catboost"
    native = ("catboost",)

    def written(self, model: Any) -> Any:
        """The trees; names and times that the file format adds are left out."""
        leaves = getattr(model, "get_leaf_values", None)
        return [leaves(), model.get_leaf_weights()] if leaves is not None else None


class Polars(Framework):
    """Samples and shuffles without a seed draw from one generator of the process."""

    name = "polars"
    global_seed_calls = ("polars.set_random_seed",)

    def take_seeds(self, name: str, module: ModuleType) -> None:  # noqa: ARG002
        """Reach constants that the generator is given."""
        kind = seeding.Kind("polars", seeding.whole_number)
        seeding.take_calls(module, "set_random_seed", "polars.set_random_seed", kind)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG002
        """Seed it as the level says, and notice when the training does."""
        if settings.seed is not None:
            module.set_random_seed(settings.seed)
            seeding.seed_processes("polars.set_random_seed", module.set_random_seed, settings.seed)
        if not settings.takes_seeds:
            seeding.watch_calls(module, "set_random_seed", "polars.set_random_seed", recorder)


class Numba(Framework):
    """Compiled functions that call `numpy.random` or `random` draw from generators that are numba's own."""

    name = "numba"

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG002
        """Seed those of this thread as the level says; in a forked child numba asks for entropy."""
        if settings.seed is None:
            return
        _seed_compiled(settings.seed)
        seeding.seed_processes("numba", _seed_compiled, settings.seed, asks_when_forked=True)

    def left_open(self, module: ModuleType) -> list[str]:  # noqa: ARG002
        """Each of its threads has generators of its own."""
        parallel = sys.modules.get("numba.np.ufunc.parallel")
        started = parallel is not None and getattr(parallel, "_is_initialized", False)
        return [
            "numba: parallel functions draw from generators of its threads, which the level does not reach"
        ] * started


def _seed_compiled(seed: int) -> None:
    states: Any = importlib.import_module("numba._helperlib")
    for state in (states.rnd_get_np_state_ptr(), states.rnd_get_py_state_ptr()):
        states.rnd_seed(state, seed % 2**32)


FRAMEWORKS = (ScikitLearn(), XGBoost(), LightGBM(), CatBoost(), Polars(), Numba())
