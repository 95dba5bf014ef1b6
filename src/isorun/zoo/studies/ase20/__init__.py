"""Problems and opportunities in training deep learning software systems: an analysis of variance (ASE 2020)."""
