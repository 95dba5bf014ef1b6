"""Metrics in the files that a training writes: JSON, JSON lines, CSV, TensorBoard events."""
