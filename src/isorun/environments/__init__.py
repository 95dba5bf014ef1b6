"""Where a training runs: a family, prepared on the machine that carries the run out."""
