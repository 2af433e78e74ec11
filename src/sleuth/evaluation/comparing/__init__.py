"""Finished evaluations side by side: differences, tests, seeds, error classes, costs, and the tables that tell them."""
