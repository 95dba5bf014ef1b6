"""Decide while runs come in: looks, spending, boundaries, futility, equivalence and projections, one noun a file.

looks ─▶ paths (statistics at every look) ─▶ calibration (critical values) ─▶ rules ─▶ verdict.decide
                                                 ▲ spending, null_law, e_process, futility, equivalence
"""
