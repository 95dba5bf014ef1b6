"""Metric-based few-shot learning: matching networks, prototypical networks and TADAM, and how stable they are."""
