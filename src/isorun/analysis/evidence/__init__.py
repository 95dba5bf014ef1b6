"""What runs are worth as evidence: units (what was drawn independently) and conditions (what weakens it)."""
