"""Sampling from a local model: one context, or many in a batch that is refilled as turns end."""
