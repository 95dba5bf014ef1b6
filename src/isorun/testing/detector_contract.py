"""The promises of `AbstractDetector` as tests: derive from the class and name your detector."""

from __future__ import annotations

import math

import pytest

from isorun.diagnose import AbstractDetector, Trace

__all__ = ["DetectorContract"]

_ODD = (math.nan, math.inf, -math.inf, 0.0, -1.0)
_ROW = {
    "step": 1,
    "layers": ["first", "last"],
    "gradient": list(_ODD[:2]),
    "weight": [0.0, "NaN"],
    "zero": [1.0, None],
    "dead": {"relu 1": math.nan},
    "saturated": {"tanh 1": "x"},
    "inputs": {"mean": math.inf},
    "output": {"looks": 3, "loss": None},
}
_TRACES = (
    Trace(),
    Trace.of_rows([{}, _ROW]),
    Trace.of_rows([], curves={"loss": _ODD}),
    Trace.of_rows([_ROW, _ROW], curves=dict.fromkeys(("loss", "accuracy", "val_loss", "val_accuracy"), _ODD)),
    Trace.of_rows([_ROW], curves={"loss": [0.0] * 9, "accuracy": [0.0] * 9, "val_loss": [0.0] * 9}),
)


class DetectorContract:
    """What every detector promises."""

    def detector(self) -> AbstractDetector:
        """The detector that is tested."""
        raise NotImplementedError

    def test_it_says_what_it_finds_and_what_to_try(self) -> None:
        detector = self.detector()
        assert detector.kind
        assert detector.kind == detector.kind.lower()
        assert detector.remedies
        assert all(detector.remedies)

    def test_an_empty_trace_lacks_something_or_shows_nothing(self) -> None:
        detector = self.detector()
        assert detector.lacks(Trace()) or detector.examine(Trace()) is None

    @pytest.mark.parametrize("trace", _TRACES, ids=range(len(_TRACES)))
    def test_no_trace_makes_it_raise_and_the_same_one_gets_the_same_answer(self, trace: Trace) -> None:
        detector = self.detector()
        if not detector.lacks(trace):
            found = detector.examine(trace)
            assert found == self.detector().examine(trace)
            assert found is None or (found.kind == detector.kind and found.evidence and found.remedies)
