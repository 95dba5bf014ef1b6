"""For all tests: this folder is importable, and neither a slow machine nor a shell that ignores Ctrl-C fails them."""

import signal

from hypothesis import settings

settings.register_profile("isorun", deadline=None, print_blob=True)
settings.load_profile("isorun")

# Started in the background (nohup, some CI systems), Python ignores Ctrl-C, and so would all children of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
