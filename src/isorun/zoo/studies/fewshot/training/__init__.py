"""One few-shot training: its options, data, steps, evaluation and randomness."""
