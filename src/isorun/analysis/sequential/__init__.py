"""Decide while runs come in: looks, spending, boundaries, futility, equivalence and projections, one noun a file.

plan ─▶ looks ─▶ paths (statistics at every look) ─▶ boundaries (calibration, null_scores, spending) ─▶ rules
                                                        rules ─▶ trace ─▶ verdict.decide ◀─ interval, projection
"""
