"""DREAM: AutoML searches that stop improving: ours, repaired and not, and the published ones, replayed from logs."""
