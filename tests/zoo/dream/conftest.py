"""Made search logs, and the real ones where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_search_logs import made_search

from isorun.zoo.data.search_logs import RunningBest, SearchLogs


@pytest.fixture
def small_logs() -> SearchLogs:
    searches = (
        made_search([0.2, 0.1, 0.4, 0.4, 0.8], "I", "greedy"),
        made_search([0.1, 0.3], "II", "dream", seconds=5000.0),
    )
    running = (
        RunningBest("I", "greedy", "trial", (0.2, 0.2, 0.4, 0.4, 0.8)),
        RunningBest("I", "greedy", "time", (0.8,)),
    )
    return SearchLogs(searches, running, "made")


@pytest.fixture
def real_logs_folder() -> Path:
    """The published logs, prepared; a test that needs them is left out where they are not."""
    shared = os.environ.get("ISORUN_SHARED_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data"
    folder = Path(shared) / "dream-search-logs"
    if not (folder / "trials.csv").is_file():
        pytest.skip(f"the published search logs are not in {folder}")
    return folder
