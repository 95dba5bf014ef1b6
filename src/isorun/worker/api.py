"""The calls a training makes, also where no isorun is installed. Outside isorun they do nothing; `watch` watches.

So do the callbacks for frameworks, which stand on these calls.
"""

from __future__ import annotations

import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterable, Mapping, Sequence

from . import recorder

_watching: Any = None
_followers: list[tuple[threading.Thread, Callable[[], Any]]] = []

__all__ = ["digest", "log", "result", "watch"]


def log(
    step: Any = None,
    *,
    epoch: Any = None,
    per_class: Mapping[Any, Any] | None = None,
    predictions: Any = None,
    **metrics: Any,
) -> None:
    """Record metrics at a step or an epoch: `log(epoch=3, val_loss=0.1)`."""
    current = recorder.active()
    if current is not None:
        current.log(step, epoch=epoch, per_class=per_class, predictions=predictions, **metrics)
    if epoch is not None and _watching is not None:
        _watching.marked(epoch, metrics)
    if epoch is not None and _followers:
        _tell_followers(epoch)


def follow(follower: Callable[[], Any]) -> None:
    """Call what this weak reference gives with every epoch that this thread tells `log`, as long as it is there."""
    _followers.append((threading.current_thread(), follower))


def _tell_followers(epoch: Any) -> None:
    _followers[:] = [one for one in _followers if one[1]() is not None]
    for reference in recorder.of_this_thread(_followers):
        follower = reference()
        if follower is not None:
            follower(epoch)


def result(
    *,
    per_class: Mapping[Any, Any] | None = None,
    predictions: Any = None,
    labels: Any = None,
    weights: Any = None,
    **values: Any,
) -> None:
    """Record final values: `result(accuracy=0.98, per_class={...}, predictions=..., labels=..., weights=model)`."""
    current = recorder.active()
    if current is not None:
        current.result(per_class=per_class, predictions=predictions, labels=labels, weights=weights, **values)


def stand_for(names: Iterable[str]) -> None:
    """What is logged stands for these metrics, too, which a framework prints under further names; for callbacks."""
    current = recorder.active()
    if current is not None:
        current.stand_for(names)


def digest(name: str, obj: Any, step: Any = None) -> str | None:
    """Record a digest of weights or other arrays under a name; None outside isorun."""
    current = recorder.active()
    return None if current is None else current.digest(name, obj, step)


def watch(model: Any, *, every: int | None = None) -> Any:
    """Watch a model's training from inside: `isorun.watch(model)` before it begins; a `Watcher` with `rows`.

    every: sample each so-many-th step; by default as many as 0.1 % of the training's time pays for.
    """
    global _watching  # noqa: PLW0603  most trainings are not watched, and load nothing for it
    from . import watching

    _watching = watching
    return watching.watch(model, every=every)


class StandInFinder:
    """Ends `sys.meta_path`: it is asked only when no other finder knows isorun."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """A spec for `isorun` itself and for its callbacks (`isorun.frameworks`), for nothing else."""
        if fullname == "isorun":
            return ModuleSpec(fullname, self, origin="isorun worker", is_package=True)  # type: ignore[arg-type]
        return _spec_of_callbacks(fullname) if fullname == "isorun.frameworks" else None

    def create_module(self, spec: ModuleSpec) -> None:
        """The import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the public calls."""
        module.__doc__ = "What a training needs of isorun: log, result, digest, watch."
        for name in __all__:
            setattr(module, name, globals()[name])
        module.__all__ = list(__all__)  # type: ignore[attr-defined]


def _spec_of_callbacks(name: str) -> ModuleSpec | None:
    """Their folder lies beside the worker's; what is in it runs wherever the worker does."""
    from importlib.util import spec_from_file_location  # hardly any child Python needs it

    folder = Path(__file__).resolve().parent.parent / "frameworks"
    return spec_from_file_location(name, str(folder / "__init__.py"), submodule_search_locations=[str(folder)])


def install_stand_in() -> None:
    """Let `import isorun` find these calls in an interpreter that does not have it."""
    sys.meta_path.append(StandInFinder())
