"""What stands on arrays: scikit-learn, which draws from NumPy, and those that draw in compiled code of their own.

The boosters have seeds that no call shows; polars and numba a generator of the whole process, which can be seeded.

What was fitted is seen by the functions that fit, each wrapped in memory, and digested when the training ends: by what
the libraries say their models hold, never by pickling them.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import threading
import weakref
from types import ModuleType
from typing import Any, Callable

from .. import reaching, seeding
from ..levels import Settings
from ..recorder import Recorder, guarded
from .base import Framework, Watch, digest_or_error

# Settings that say how to compute and not what came out, what fitting took in time, names, and an address in memory.
_WITHOUT_WEIGHTS = ("n_jobs", "verbose", "feature_names_in_", "random_state", "memory", "refit_time_", "_stop_words_id")
_FITTING = ("fit", "partial_fit", "fit_transform", "fit_predict")
_SPARSE = ("data", "indices", "indptr", "row", "col", "offsets")
_MOST_FITTED = 32


class FittedModels(Watch):
    """The models that a training fits one after another, of all libraries in this file.

    The last two are kept alive until the end. One that a third replaces is digested then, so that a training of ten
    models is known by all of them; where there are too many the first ones and the last two are. What is fitted as a
    part of another model, in threads of a pool or in other processes is no model of its own.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.is_fitting = False
        self.unseen = False
        self._latest: Any = None
        self._before: Any = None
        self._replaced: list[Any] = []
        self._main = threading.main_thread()

    def fitted(self, fit: Callable[..., Any], model: Any, args: Any, kwargs: Any) -> Any:
        """Fit, and remember the model."""
        if self.is_fitting or threading.current_thread() is not self._main:
            self.unseen = self.unseen or not self.is_fitting
            return fit(model, *args, **kwargs)
        self.is_fitting = True
        try:
            result = fit(model, *args, **kwargs)
        finally:
            self.is_fitting = False
        if model is not self._latest and model is not self._before:
            guarded(self.recorder.folder, "digest of a fitted model", self._add)(model)
        return result

    def _add(self, model: Any) -> None:
        replaced = self._before
        self._before, self._latest = self._latest, model
        if replaced is not None and len(self._replaced) < _MOST_FITTED:
            self._replaced.append(digest_or_error(replaced))

    def finish(self) -> None:
        """Digest what was fitted, unless this process fits for another."""
        recorder = self.recorder
        if recorder.is_forked_child or recorder.rank or _fits_for_another():
            return
        kept = [model for model in (self._before, self._latest) if model is not None]
        if kept:
            recorder.trained("estimators", [*self._replaced, *kept])
        elif self.unseen:
            recorder.note("no-digest", "models were fitted in threads alone, in no order that can be relied on")


def _fits_for_another() -> bool:
    """Whether this is a process of a pool, as joblib and multiprocessing start them."""
    main = sys.modules.get("__main__")
    started_by = str(getattr(getattr(main, "__spec__", None), "name", ""))
    pool = sys.modules.get("multiprocessing.process")
    return "loky" in started_by or (pool is not None and pool.parent_process() is not None)


_fitted: FittedModels | None = None


def _follow(recorder: Recorder) -> FittedModels | None:
    """What remembers models, once a process; the watch where it is new."""
    global _fitted  # noqa: PLW0603  one for all libraries of this file: what fits inside of another is a part of it
    if _fitted is not None and _fitted.recorder is recorder:
        return None
    _fitted = FittedModels(recorder)
    return _fitted


def _wrap(owner: Any, name: str) -> None:
    """Let a method of a class tell of the model that it fits."""
    fit = owner.__dict__.get(name)
    if not callable(fit) or hasattr(fit, "tells_isorun"):
        return

    @functools.wraps(fit)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        return fit(self, *args, **kwargs) if _fitted is None else _fitted.fitted(fit, self, args, kwargs)

    told.tells_isorun = True  # type: ignore[attr-defined]
    setattr(owner, name, told)


class ScikitLearn(Framework):
    """Without a `random_state` its estimators draw from NumPy's global generator, which the level has seeded."""

    name = "sklearn"
    undigested = "no estimator of its own was fitted in this process; isorun.digest does any"
    safe_to_preload = ("sklearn",)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch | None:  # noqa: ARG002
        """Follow every class that scikit-learn makes from now on, and those that a fork server has imported."""
        base = module.BaseEstimator
        if not hasattr(base.__init_subclass__, "tells_isorun"):
            _follow_subclasses(base)
        return _follow(recorder)

    def children(self, value: Any) -> dict[Any, Any] | None:
        """All that an estimator of its own holds, which settings are a part of, and the parts of a tree.

        Some hold their parts in settings, others where no attribute shows them. What cannot be seen has no digest.
        """
        module = sys.modules.get("sklearn.base")
        if module is None or not type(value).__module__.startswith("sklearn."):
            return None
        if type(value).__module__.startswith("sklearn.tree."):  # a thousand in a forest, and known by their nodes alone
            known = {name: getattr(value, name) for name in ("tree_", "classes_") if hasattr(value, name)}
            held = known or _parts(value)
        elif isinstance(value, module.BaseEstimator):
            held = vars(value)
        elif isinstance(value, dict):
            held = dict(value)
        else:
            held = _parts(value)
        return {key: _seen(part) for key, part in sorted(held.items(), key=_by_name) if not _is_aside(key)}


def _follow_subclasses(base: Any) -> None:
    def made(cls: Any, /, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        _wrap_fitting(cls)

    made.tells_isorun = True  # type: ignore[attr-defined]
    base.__init_subclass__ = classmethod(made)
    known = list(base.__subclasses__())
    for cls in known:
        _wrap_fitting(cls)
        known += cls.__subclasses__()


def _wrap_fitting(cls: Any) -> None:
    if cls.__module__.startswith("sklearn."):  # others may keep in their models how long fitting took
        for name in _FITTING:
            _wrap(cls, name)


def _parts(value: Any) -> dict[str, Any]:
    """What an object would be made of again, as it says itself."""
    return {str(place): part for place, part in enumerate(value.__reduce_ex__(2)[1:])}


def _by_name(item: tuple[Any, Any]) -> str:
    return repr(item[0])


def _is_aside(key: Any) -> bool:
    return key in _WITHOUT_WEIGHTS or str(key).endswith("_time")


def _seen(value: Any) -> Any:
    """A part of an estimator as something that has a digest, whatever it is and wherever it lies in memory."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {repr(key): _seen(value[key]) for key in sorted(value, key=repr) if not _is_aside(key)}
    if isinstance(value, (list, tuple)):
        return [_seen(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return [_seen(part) for part in sorted(value, key=repr)]
    if isinstance(value, (slice, range)):
        return repr(value)
    if isinstance(value, type) or (callable(value) and isinstance(getattr(value, "__name__", None), str)):
        return f"{value.__module__}.{getattr(value, '__qualname__', value.__name__)}"
    return _seen_array(value, type(value).__module__)


def _seen_array(value: Any, module: str) -> Any:
    """Arrays of objects and sparse ones by their parts; a generator, which is not trained, by its kind alone."""
    if module.startswith("numpy.random"):
        return type(value).__name__
    if module.startswith("numpy") and not hasattr(value, "__array__"):
        return str(value)  # a type of numbers
    if module.startswith("scipy.sparse"):
        parts = {name: getattr(value, name) for name in _SPARSE if hasattr(value, name)}
        return {"format": value.format, "shape": str(value.shape), **parts}
    if module.startswith("scipy."):
        return _seen(dict(vars(value)))
    if getattr(getattr(value, "dtype", None), "hasobject", False) and hasattr(value, "tolist"):
        return [str(getattr(value, "shape", "")), _seen(value.tolist())]
    return value


class Booster(Framework):
    """A booster: its random numbers come from settings such as `seed`, which only its own code reads."""

    undigested = "no model of its own was fitted in this process; isorun.digest does any"
    # The class whose methods fit, and the methods, which may be called once a round.
    fits = ""
    methods: tuple[str, ...] = ()

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch | None:  # noqa: ARG002
        """Follow the models that it fits, by whichever interface."""
        for method in self.methods:
            _wrap(getattr(module, self.fits), method)
        return _follow(recorder)

    def left_open(self, module: ModuleType) -> list[str]:  # noqa: ARG002
        """Sums over threads, and seeds that no call shows."""
        return [f"{self.name}: it draws and sums in code of its own, which the level does not reach"]

    def children(self, value: Any) -> dict[Any, Any] | None:
        """The trees as the library writes them; None for what is no model of it.

        One that is not fitted, as a search over settings holds it, is known by its settings.
        """
        if type(value).__module__.partition(".")[0] != self.name:
            return None
        if not _is_fitted(value):
            given = value.get_params()
            return {name: _seen(given[name]) for name in sorted(given) if not _is_aside(name)}
        text = self.written(value)
        return None if text is None else {"model": text}

    def written(self, model: Any) -> Any:
        """The model as text or bytes; None where it cannot be had."""
        raise NotImplementedError


def _is_fitted(model: Any) -> bool:
    """What a model says itself; one that cannot say it, or has no settings to be known by, is taken for fitted."""
    asked = getattr(model, "__sklearn_is_fitted__", None) or getattr(model, "is_fitted", None)
    return not callable(asked) or not hasattr(model, "get_params") or bool(asked())


class XGBoost(Booster):
    """XGBoost."""

    name = "xgboost"
    native = ("xgb",)
    fits, methods = "Booster", ("update", "boost")

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch | None:
        """The same, and where kernels are fixed let its linear booster train in one thread."""
        if settings.fixes_kernels:
            for method in self.methods:
                _in_one_thread(getattr(module, self.fits), method, settings.threads, recorder)
        return super().prepare(name, module, settings, recorder)

    def written(self, model: Any) -> Any:
        """The booster, of whichever interface."""
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        return bytes(booster.save_raw()) if hasattr(booster, "save_raw") else None


def _in_one_thread(owner: Any, name: str, threads: int | None, recorder: Recorder) -> None:
    """Let a method that trains ask first for one thread, where threads would write to one vector of weights at once.

    So does the updater `shotgun`, which a linear booster has where the training names none; with one thread it is the
    same algorithm. All other boosters of the library give the same bits with any fixed number of threads.
    """
    train = getattr(owner, name)
    seen: Any = weakref.WeakSet()

    def ask(booster: Any) -> None:
        if booster in seen:
            return
        seen.add(booster)
        config = json.loads(booster.save_config())["learner"]
        linear = config["gradient_booster"].get("gblinear_train_param", {})
        given = int(config["generic_param"]["nthread"]) or threads
        if linear.get("updater") == "shotgun" and given != 1:
            booster.set_param({"nthread": 1})
            where = seeding.calling().where
            message = f"nthread of XGBoost's linear booster was to be {given} at {where}; the level answered with 1"
            recorder.note_at("setting-answered", ("nthread", where), message)

    @functools.wraps(train)
    def asking(self: Any, *args: Any, **kwargs: Any) -> Any:
        guarded(recorder.folder, "threads of a linear booster", ask)(self)
        return train(self, *args, **kwargs)

    setattr(owner, name, asking)


class LightGBM(Booster):
    """LightGBM."""

    name = "lightgbm"
    native = ("lgb", "lightgbm")
    fits, methods = "Booster", ("update",)

    def written(self, model: Any) -> Any:
        """The trees of the booster, of whichever interface; settings, such as its threads, stand behind them."""
        booster = getattr(model, "booster_", model)
        return booster.model_to_string().partition("\nparameters:")[0] if hasattr(booster, "model_to_string") else None


class CatBoost(Booster):
    """CatBoost."""

    name = "catboost"
    native = ("catboost",)
    fits, methods = "CatBoost", ("_fit",)

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
        reaching.take_calls(module, "set_random_seed", "polars.set_random_seed", kind)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG002
        """Seed it as the level says, and notice when the training does."""
        if settings.seed is not None:
            module.set_random_seed(settings.seed)
            seeding.seed_processes("polars.set_random_seed", module.set_random_seed, settings.seed)
        if not settings.takes_seeds:
            reaching.watch_calls(module, "set_random_seed", "polars.set_random_seed", recorder)


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
