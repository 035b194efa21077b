"""Smaller runs: the same answers from a fraction of the memory."""
