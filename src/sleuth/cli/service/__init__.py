"""Verbs that serve agents and show runs."""
