"""Crane (TACL 2018): how much the scores of an answer selection model move with threads, libraries, devices, seeds."""
