"""The store's own faulty files and small disks serve studies too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "store"))
