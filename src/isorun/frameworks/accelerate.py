"""Hugging Face accelerate: `Accelerator(log_with=IsorunTracker())` and `accelerator.init_trackers("any name")`.

`accelerator.log({"loss": …}, step=…)` is a row; one that has an `epoch` among its values is a row of that epoch. Of
several processes the first one tells, and every one is recorded with its rank.
"""

from __future__ import annotations

from typing import Any

import isorun
from isorun.frameworks import missing, numbers_of

try:
    from accelerate.tracking import GeneralTracker, on_main_process
except ModuleNotFoundError as error:
    if error.name != "accelerate":
        raise
    raise missing("accelerate", __name__) from None

__all__ = ["IsorunTracker"]


class IsorunTracker(GeneralTracker):  # type: ignore[misc]
    """A tracker that tells isorun."""

    name = "isorun"
    requires_logging_directory = False

    @property
    def tracker(self) -> Any:
        """What tracks: isorun itself."""
        return isorun

    def store_init_configuration(self, values: Any) -> None:
        """Nothing: isorun has the config of its run."""

    @on_main_process  # type: ignore[untyped-decorator]
    def log(self, values: Any, step: Any = None, **_: Any) -> None:
        """A row of numbers; texts and pictures are for other trackers."""
        numbers = numbers_of(values)
        epoch = numbers.pop("epoch", None)
        isorun.log(step, epoch=epoch, **numbers)
