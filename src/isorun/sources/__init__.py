"""Metrics with no change to the training's code: from its output, from files it writes, from TensorBoard events.

A source reads metrics of one kind; `base.AbstractSource` says what it promises. `Reading` is all sources of one run:
it takes the output line by line while the run prints, and reads what the run left when it has ended. `scan_text` and
`describe` show a user what would be found in a log. The rules for free-form lines are in `freeform`.
"""

from __future__ import annotations

from isorun.sources.base import AbstractSource, Found, describe, merged
from isorun.sources.lines import LineMetrics, scan_text
from isorun.sources.reading import Reading, read_files

__all__ = ["AbstractSource", "Found", "LineMetrics", "Reading", "describe", "merged", "read_files", "scan_text"]
