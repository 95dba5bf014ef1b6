"""A detector of trainings that went on for long after their best epoch."""

import math

from isorun.diagnose import NOT_TOLD, AbstractDetector

FEWEST = 10


class Overlong(AbstractDetector):
    """The best epoch lies in the first half."""

    kind = "overlong"
    remedies = ("stop when the validation loss has not fallen for some epochs",)

    def lacks(self, trace):
        if len(trace.val_loss.finite) >= FEWEST:
            return ""
        return f"fewer than {FEWEST} {trace.points}" if trace.val_loss.values else NOT_TOLD

    def examine(self, trace):
        told = list(zip(trace.val_loss.values, trace.val_loss.epochs, strict=True))
        loss, epoch = min(one for one in told if math.isfinite(one[0]))
        later = sum(one[1] > epoch for one in told)
        if 2 * later < len(told):
            return None
        return self.found(epoch, f"the validation loss was lowest ({loss:.4g}) with {later} of {len(told)} to come")
