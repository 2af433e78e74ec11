"""A cross-encoder small enough to be made by every test."""

from pathlib import Path

from support.judges import tiny_bert


def save_cross_encoder(folder: Path, num_labels: int) -> Path:
    """A real cross-encoder in `folder`: a BERT of one layer over letters, untrained."""
    return tiny_bert(folder, tuple(f"label {i}" for i in range(num_labels)))
