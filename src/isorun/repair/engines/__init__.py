"""Engines: how a search is read, and how the next trial is proposed. A file an engine, public APIs only."""
