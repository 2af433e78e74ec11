"""Sleuth: train, evaluate and serve RAG agents that show their evidence, by reinforcement learning."""

__version__ = "0.1.0.dev0"
