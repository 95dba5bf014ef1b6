"""Record: keep what runs left, durably and once."""
