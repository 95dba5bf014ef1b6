"""Outside programs under isorun: declared in programs/, tried by `python -m outside.run`, told in docs/outside.md."""
