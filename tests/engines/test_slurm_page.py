"""The page that tells how to run on a cluster, typed where SLURM is."""

import shutil
from pathlib import Path

import pytest

from test_site import section
from typed_pages import Reader

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.engines


def test_every_command_for_slurm_prints_what_the_page_says(slurm, tmp_path):
    for file in (ROOT / "examples" / "moons").iterdir():
        shutil.copy(file, tmp_path)
    text = (ROOT / "docs" / "how-to" / "cluster.md").read_text()
    reader = Reader(tmp_path)
    reader.follow("\n" + section(text, "SLURM"))
    assert len(reader.typed) == 2
