"""Comparison of finished evaluations: paired differences, tests, seeds, error classes, costs, and their tables."""
