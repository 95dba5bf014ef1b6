"""Wrong loss: the loss does not fit what the model puts out.

Told from values: what the output is (its own last function, or numbers that sum to one) and which loss the gradient by
the output is that of. A softmax in front of a cross entropy that applies one itself, a sigmoid in front of one that
applies one, a likelihood without a logarithm, a softmax of one number, a rectified output.
"""

from __future__ import annotations

from typing import ClassVar, Final

from isorun.diagnose import AbstractDetector, Problem, Trace

_WRONG: Final = {
    ("probabilities", "cross-entropy-of-logits"): "the loss applies a softmax to an output that is one already",
    ("sigmoid", "cross-entropy-of-logits"): "the loss applies a softmax to the output of a sigmoid",
    ("sigmoid", "binary-cross-entropy-of-logits"): "the loss applies a sigmoid to an output that is one already",
    ("probabilities", "binary-cross-entropy-of-logits"): "the loss applies a sigmoid to the output of a softmax",
    ("probabilities", "log-likelihood-of-log-probabilities"): "the loss takes probabilities for their logarithms",
    ("numbers", "log-likelihood-of-log-probabilities"): "the loss takes numbers for logarithms of probabilities",
    ("sigmoid", "log-likelihood-of-log-probabilities"): "the loss takes probabilities for their logarithms",
    ("rectified", "cross-entropy-of-logits"): "a ReLU cuts off the logits in front of the loss",
    ("rectified", "binary-cross-entropy-of-logits"): "a ReLU cuts off the logits in front of the loss",
    ("numbers", "binary-cross-entropy-of-probabilities"): "the loss takes numbers for probabilities",
    ("numbers", "log-likelihood-of-probabilities"): "the loss takes numbers for probabilities",
}
_WRONG_WHERE_IT_FAILS: Final = {
    "squares-of-classes": "the loss is that of squares, and the targets are classes",
}


class WrongLoss(AbstractDetector):
    """Looks at the output of the model and the gradient by it."""

    kind = "wrong-loss"
    remedies: ClassVar = (
        "the model's own output without softmax or sigmoid, and a cross entropy of logits",
        "one output a class for classes that exclude each other, one with a sigmoid for yes or no",
    )

    def lacks(self, trace: Trace) -> str:
        """An output that was seen with its gradient."""
        if not trace.samples:
            return trace.unwatched
        return "" if _outputs(trace) else "the model's output was not seen with its gradient"

    def examine(self, trace: Trace) -> Problem | None:
        """Every output that was seen has to agree."""
        pairs = _outputs(trace)
        epoch = next((row.epoch for row in trace.rows if row.output), None)
        if all(looks == "constant" for looks, _ in pairs):
            return self.found(epoch, "the output is a softmax of one number, which is 1 whatever the model learns")
        if all(loss == "flat" for _, loss in pairs):
            return self.found(epoch, "the loss does not depend on the model's output: its gradient is zero")
        if len(set(pairs)) != 1:
            return None
        why = _WRONG.get(pairs[0]) or ("" if trace.learns else _WRONG_WHERE_IT_FAILS.get(pairs[0][1], ""))
        return self.found(epoch, why) if why else None


def _outputs(trace: Trace) -> list[tuple[str, str]]:
    seen = [row.output for row in trace.rows if row.output]
    return [(str(output.get("looks")), str(output["loss"])) for output in seen if "loss" in output]
