"""Retrievers made worse on purpose: with irrelevant, missing or contradicting passages."""
