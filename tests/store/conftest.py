"""A store to be damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_faults import filled


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path / "store")
    return tmp_path / "store"
