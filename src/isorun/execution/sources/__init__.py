"""Metrics with no change to the training's code: from its output, from files it writes, from TensorBoard events.

`LineMetrics` reads the output line by line while the run prints; `read_files` reads what it left when it has ended;
`scan_text` and `describe` show a user what would be found. The rules for free-form lines are in `text.textlines`.
"""

from __future__ import annotations

from isorun.execution.sources.found import Found, describe, merged
from isorun.execution.sources.text.lines import LineMetrics, scan_text
from isorun.execution.sources.written.files import read_files

__all__ = ["Found", "LineMetrics", "describe", "merged", "read_files", "scan_text"]
