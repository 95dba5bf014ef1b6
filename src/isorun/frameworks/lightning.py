"""Lightning: `Trainer(callbacks=[IsorunCallback()])`, and nothing else.

Each epoch is a row with all that the module logs (`self.log`), numbered from 0 as Lightning does; what `trainer.test()`
and `trainer.validate()` give are final values. Where `test_step` returns its predictions, they are kept with their
labels, and so are the accuracies of each class.
"""

from __future__ import annotations

from typing import Any, Mapping

import isorun
from isorun.frameworks import classes_of, is_recording, missing, numbers_of, stand_for

try:
    from lightning.pytorch.callbacks import Callback
except ModuleNotFoundError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ModuleNotFoundError:
        raise missing("lightning", __name__) from None

__all__ = ["IsorunCallback"]

_PREDICTED = ("predictions", "preds", "pred", "y_hat", "y_pred", "logits", "probs")
_LABELS = ("labels", "label", "targets", "target", "y", "y_true")


class IsorunCallback(Callback):  # type: ignore[misc]
    """Tells isorun what a Trainer does.

    predictions, labels: under which key `test_step` returns what is predicted and what is true; by default one of the
    usual (`preds`, `logits`, …, `target`, `labels`, …). Labels that are not returned are those of a batch `(x, y)`.
    """

    def __init__(self, predictions: str = "", labels: str = "") -> None:
        super().__init__()
        self._predicted_keys = (predictions,) if predictions else _PREDICTED
        self._label_keys = (labels,) if labels else _LABELS
        self._told: dict[str, Any] = {}
        self._before: dict[str, Any] = {}
        self._epoch: Any = None
        self._predicted: dict[int, list[tuple[Any, Any]]] = {}

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Nothing of an earlier fit is told again."""
        self._told, self._epoch = dict(trainer.callback_metrics) if is_recording() else {}, None

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """The epoch before is whole now: a module may log in its own `on_train_epoch_end`, which comes after ours."""
        self._tell_epoch(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """An epoch has ended; what it gave is told when all of it is there."""
        self._epoch = trainer.current_epoch

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """So is the last one."""
        self._tell_epoch(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Whatever is new after a validation is of that validation."""
        self._before = dict(trainer.callback_metrics) if is_recording() else {}

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Within an epoch a row at its part of the epoch; by itself (`trainer.validate`) final values.

        After the last batch of an epoch it is a part of the epoch's own row.
        """
        if not is_recording():
            return
        if trainer.sanity_checking or not trainer.is_global_zero:
            self._told.update(trainer.callback_metrics)
        elif str(getattr(trainer.state.fn, "value", trainer.state.fn)) == "validate":
            isorun.result(**self._new(trainer, self._before))
        elif not trainer.is_last_batch:
            batches = trainer.num_training_batches
            part = (trainer.fit_loop.batch_idx + 1) / batches if 0 < batches < float("inf") else 0.0
            epoch = trainer.current_epoch + part - 1.0
            isorun.log(trainer.global_step, epoch=epoch, **self._new(trainer, self._before))

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """What is predicted from now on is of this test."""
        self._predicted = {}

    def on_test_batch_end(  # noqa: PLR0917  Lightning's signature
        self,
        trainer: Any,  # noqa: ARG002
        pl_module: Any,  # noqa: ARG002
        outputs: Any,
        batch: Any,
        batch_idx: int,  # noqa: ARG002
        dataloader_idx: int = 0,
    ) -> None:
        """Keep what `test_step` returned of its predictions."""
        predicted, labels = self._found(outputs, batch)
        if predicted is not None and is_recording():
            self._predicted.setdefault(dataloader_idx, []).append(classes_of(predicted, labels))

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Final values, and the predictions."""
        kept = {index: _joined(trainer, index, parts) for index, parts in self._predicted.items()}
        self._predicted = {}
        if self._tells(trainer):
            names = {index: f"test_{index}" if len(kept) > 1 else "test" for index in kept}
            predictions = {names[index]: predicted for index, (predicted, _) in kept.items()}
            labels = {names[index]: true for index, (_, true) in kept.items() if true is not None}
            isorun.result(**self._new(trainer, self._told), predictions=predictions or None, labels=labels or None)

    def _tells(self, trainer: Any) -> bool:
        return bool(is_recording() and trainer.is_global_zero)

    def _tell_epoch(self, trainer: Any) -> None:
        epoch, self._epoch = self._epoch, None
        if epoch is not None and self._tells(trainer):
            isorun.log(trainer.global_step, epoch=epoch, **self._new(trainer, self._told))

    def _new(self, trainer: Any, before: Mapping[str, Any]) -> dict[str, Any]:
        """The metrics that were computed since: others are of an earlier epoch or stage."""
        now = dict(trainer.callback_metrics)
        new = {name: value for name, value in now.items() if before.get(name) is not value}
        self._told = {**self._told, **new}
        doubled = {name for name in now if _is_doubled(name, now)}
        stand_for(doubled)
        return numbers_of({name: value for name, value in new.items() if name not in doubled})

    def _found(self, outputs: Any, batch: Any) -> tuple[Any, Any]:
        given = outputs if isinstance(outputs, Mapping) else {}
        predicted = next((given[key] for key in self._predicted_keys if key in given), None)
        of_batch = batch if isinstance(batch, Mapping) else {}
        known = [table[key] for table in (given, of_batch) for key in self._label_keys if key in table]
        if not known and isinstance(batch, (tuple, list)) and len(batch) == 2:
            known = [batch[1]]
        return predicted, known[0] if known else None


def _is_doubled(name: str, metrics: Mapping[str, Any]) -> bool:
    """`loss_step` and `loss_epoch` beside `loss`, which is that of the epoch."""
    return name.endswith(("_step", "_epoch")) and name.rpartition("_")[0] in metrics


def _joined(trainer: Any, index: int, parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Predictions and labels of one loader, those of all ranks in the order of the data; every rank calls this."""
    import numpy as np

    predicted = np.concatenate([found for found, _ in parts])
    true = np.concatenate([labels for _, labels in parts]) if all(labels is not None for _, labels in parts) else None
    if trainer.world_size < 2:
        return predicted, true
    from torch import distributed

    ranks: list[Any] = [None] * trainer.world_size
    distributed.all_gather_object(ranks, (predicted, true))
    found = _in_order([rank[0] for rank in ranks], _size(trainer, index))
    return found, None if true is None else _in_order([rank[1] for rank in ranks], _size(trainer, index))


def _in_order(parts: list[Any], size: int | None) -> Any:
    """Ranks take examples in turn, and fill the last round up with the first ones again."""
    import numpy as np

    if len({len(part) for part in parts}) > 1:
        return np.concatenate(parts)
    return np.stack(parts, axis=1).reshape(-1, *parts[0].shape[1:])[:size]


def _size(trainer: Any, index: int) -> int | None:
    loaders = trainer.test_dataloaders
    loader = loaders[index] if isinstance(loaders, (list, tuple)) else loaders
    return len(loader.dataset) if hasattr(loader, "dataset") and hasattr(loader.dataset, "__len__") else None
