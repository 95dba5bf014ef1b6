"""Keras 3: `model.fit(…, callbacks=[IsorunCallback()])`, and nothing else.

Each epoch is a row, numbered from 1 as Keras prints it. With `IsorunCallback(test=(x_test, y_test))` the model is
evaluated when its training ends: final values `test_loss`, `test_accuracy`, …, its predictions and their labels.
"""

from __future__ import annotations

from typing import Any

import isorun
from isorun.frameworks import classes_of, is_recording, missing, numbers_of

try:
    from keras.callbacks import Callback
except ModuleNotFoundError as error:
    if error.name != "keras":
        raise  # Keras is there, and what it computes with is not
    raise missing("keras", __name__) from None

__all__ = ["IsorunCallback"]


class IsorunCallback(Callback):  # type: ignore[misc]
    """Tells isorun what `fit` and `evaluate` give.

    test: data to evaluate and predict when the training ends, as `(x, y)`; without it nothing is computed.
    """

    def __init__(self, test: Any = None) -> None:
        super().__init__()
        if test is not None and (not isinstance(test, (tuple, list)) or len(test) != 2):
            raise TypeError(f"test: found {type(test).__name__}; a pair (x, y) of arrays is allowed")
        self._test = test
        self._is_fitting = False

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Evaluations from now on are a part of `fit`, which tells them with its epochs."""
        self._is_fitting = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """A row."""
        isorun.log(epoch=epoch + 1, **numbers_of(logs or {}))

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Evaluate what is to be."""
        self._is_fitting = False
        if self._test is None or not is_recording():
            return
        x, y = self._test
        measured = self.model.evaluate(x, y, verbose=0, return_dict=True)
        predicted, labels = classes_of(self.model.predict(x, verbose=0), y)
        isorun.result(**_of_test(measured), predictions={"test": predicted}, labels={"test": labels})

    def on_test_end(self, logs: Any = None) -> None:
        """Final values of `model.evaluate(…, callbacks=[…])`."""
        if not self._is_fitting and logs:
            isorun.result(**_of_test(logs))


def _of_test(logs: Any) -> dict[str, Any]:
    """As `fit` calls those of its validation `val_loss`: `loss` alone is that of the training."""
    return {f"test_{name}": value for name, value in numbers_of(logs).items()}
