"""Analyse: pure statistics; arrays or records in, frozen results out."""
