"""Share: runs that others' tools kept come in, and what isorun recorded goes out to them.

`trackers/` is the family that reads and writes; `importing.py` makes records of what a tracker kept, `exporting.py`
what a tracker keeps of records. What a foreign run is worth as evidence is said in docs/design/trackers.md.
"""
