"""How much a piece of work does, told as it is told on every machine: by the calls of functions it takes."""

import sys


def calls_of(make):
    """How many calls of functions it takes, those of C included."""
    count = 0

    def counted(_, event, __):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counted)
    try:
        make()
    finally:
        sys.setprofile(None)
    return count
