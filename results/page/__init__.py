"""The sections of docs/results.md, each made from the stored results."""
