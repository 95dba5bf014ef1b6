"""What a study leaves this folder as, so that others can check it, compare with it and run it again.

`packing.py` makes a package of a study: `code.py`, `surroundings.py` and `crate.py` write what lies in it beside the
runs, `keys.py` signs it. `looking.py` says what is in a package and whether it is whole; `plain.py` gives its runs as
plain tables. The file itself, and reading it, is `isorun.packages`.
"""
