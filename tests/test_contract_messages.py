"""A promise that is broken says what was found."""

import re
import subprocess
import sys

BROKEN = """
from isorun.testing.memory_store import MemoryStore
from isorun.testing.store_contract import StoreContract

class Forgetful(MemoryStore):
    def finished(self, *_):
        return set()

class TestForgetful(StoreContract):
    def open(self, place, **_):
        return Forgetful()
"""


def test_a_broken_contract_shows_the_values(tmp_path):
    (tmp_path / "test_forgetful.py").write_text(BROKEN)
    words = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^E +(AssertionError: )?assert .*set\(\)", done.stdout, re.MULTILINE), done.stdout[-3000:]
