"""Hugging Face transformers: `Trainer(callbacks=[IsorunCallback()])`, and nothing else.

Each line that the Trainer logs is a row, by its epoch; what `trainer.evaluate()` gives after the training and
`trainer.predict()` are final values. Predictions reach no callback; with one more word they are kept, too:

    isorun_callback = IsorunCallback()
    Trainer(…, callbacks=[isorun_callback], compute_metrics=isorun_callback.compute_metrics(compute_metrics))
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

import isorun
from isorun.frameworks import classes_of, is_recording, missing, numbers_of

try:
    from transformers import TrainerCallback
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise missing("transformers", __name__) from None

__all__ = ["IsorunCallback"]


class IsorunCallback(TrainerCallback):  # type: ignore[misc]
    """Tells isorun what a Trainer logs."""

    def __init__(self) -> None:
        self._is_trained = False
        self._predicted: tuple[Any, Any] | None = None

    def compute_metrics(self, metrics: Callable[[Any], Mapping[str, Any]] | None = None) -> Callable[[Any], Any]:
        """What is given to the Trainer as `compute_metrics`: the same metrics, and predictions and labels are kept."""

        def computed(given: Any, *others: Any, **named: Any) -> Any:
            if is_recording():
                self._predicted = _predictions_of(given)
            return {} if metrics is None else metrics(given, *others, **named)

        return computed

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Rows from now on."""
        self._is_trained = False

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Final values from now on."""
        self._is_trained = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002
        """A row of the training, or final values after it."""
        if not state.is_world_process_zero or not logs:
            return
        values = numbers_of(logs)
        epoch = values.pop("epoch", state.epoch)
        values.pop("step", None)
        if self._is_trained:
            isorun.result(**values)
        else:
            isorun.log(state.global_step, epoch=epoch, **values)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Predictions of an evaluation, at its epoch."""
        predicted, self._predicted = self._predicted, None
        if predicted is None or not state.is_world_process_zero:
            return
        if self._is_trained:
            isorun.result(predictions={"eval": predicted[0]}, labels=_named("eval", predicted[1]))
        else:
            labels = _named("eval.labels", predicted[1]) or {}
            isorun.log(state.global_step, epoch=state.epoch, predictions={"eval": predicted[0], **labels})

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:  # noqa: ARG002
        """Final values of `trainer.predict`, and its predictions."""
        predicted, self._predicted = self._predicted, None
        if state.is_world_process_zero:
            kept = {} if predicted is None else {"predictions": {"test": predicted[0]}}
            labels = None if predicted is None else _named("test", predicted[1])
            isorun.result(**numbers_of(metrics or {}), **kept, labels=labels)


def _named(name: str, labels: Any) -> dict[str, Any] | None:
    return None if labels is None else {name: labels}


def _predictions_of(given: Any) -> tuple[Any, Any] | None:
    """Predicted and true classes; of a model that gives several arrays, the first, which are its scores."""
    predicted = given.predictions[0] if isinstance(given.predictions, (tuple, list)) else given.predictions
    labels = given.label_ids[0] if isinstance(given.label_ids, (tuple, list)) else given.label_ids
    if getattr(predicted, "ndim", 0) > 2 and labels is not None and predicted.shape[:-1] == labels.shape:
        return predicted.argmax(axis=-1), labels  # a class for each token
    return classes_of(predicted, labels)
