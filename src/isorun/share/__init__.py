"""What a study leaves this folder as, so that others can check it, compare with it and run it again.

`packing.py` makes a package of a study: `code.py`, `surroundings.py` and `crate.py` write what lies in it beside the
runs, `keys.py` signs it. `looking.py` says what is in a package and whether it is whole; `plain.py` gives its runs as
plain tables. The file itself, and reading it, is `isorun.packages`.

Runs are made again from a record or a package: `rebuilding.py` puts its code into a folder, `at_hand.py` says what else
is there (packages, data, devices), `replaying.py` makes one run again, `replicating.py` some of a package's.

And runs that others' tools kept come in, and go out to them: `trackers/` is the family that reads and writes;
`importing.py` makes records of what a tracker kept (`telling_apart.py`, `foreign_records.py`), `exporting.py` what a
tracker keeps of records. What a foreign run is worth as evidence is said in docs/design/trackers.md.
"""
