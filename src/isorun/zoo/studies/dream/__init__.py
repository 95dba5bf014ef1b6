"""DREAM: published AutoML searches, replayed from their logs."""
