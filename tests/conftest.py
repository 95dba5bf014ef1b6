"""For all tests: this folder is importable, and neither a slow machine nor a shell that ignores Ctrl-C fails them."""

import os
import signal
import sys
from pathlib import Path

from hypothesis import settings

settings.register_profile("isorun", deadline=None, print_blob=True)
settings.load_profile("isorun")

# Started in the background (nohup, some CI systems), Python ignores Ctrl-C, and so would all children of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A command's `python` is the one in PATH: here the one that has what the tests need, as in an activated environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
