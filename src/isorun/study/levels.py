"""Levels: how much nondeterminism is left in a run.

The words are the paper's (Pham et al., ASE 2020, section 3.2), with one level more: `deterministic` also fixes
the implementation-level factors, so that two runs should end with the same bits.
"""

from __future__ import annotations

import enum

__all__ = ["Level"]


class Level(enum.StrEnum):
    """How much nondeterminism is left."""

    DEFAULT = "default"
    FIXED_SEED = "fixed-seed"
    DETERMINISTIC = "deterministic"

    @property
    def fixes_seed(self) -> bool:
        """Whether the algorithmic factors (weights, order, dropout, augmentation) are fixed."""
        return self is not Level.DEFAULT

    @property
    def fixes_kernels(self) -> bool:
        """Whether the implementation-level factors (kernels, threads, CPU path) are fixed too."""
        return self is Level.DETERMINISTIC

    @property
    def meaning(self) -> str:
        """One line for people."""
        return {
            Level.DEFAULT: "nothing fixed",
            Level.FIXED_SEED: "same seed; kernels and scheduling free",
            Level.DETERMINISTIC: "same seed, deterministic kernels, fixed threads",
        }[self]
