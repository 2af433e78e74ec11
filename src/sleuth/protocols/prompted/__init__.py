"""Baselines that a prompt alone defines: no tags, no training."""
