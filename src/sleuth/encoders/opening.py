"""A name as given on a command line or kept in an index → the encoder."""

from __future__ import annotations

from pathlib import Path

from sleuth.encoders import ENCODERS
from sleuth.encoders.base import Encoder
from sleuth.encoders.families import SHORT, family_of
from sleuth.encoders.minilm import MiniLM
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.errors import ConfigError
from sleuth.registry import nearest


def open_encoder(name: str) -> Encoder:
    """ "minilm" (the installed package), "minilm:FOLDER", a family name such as "e5-base-v2", a hub
    name "owner/model", or a folder that sentence-transformers reads.

    Nothing is loaded yet. Raises ConfigError for a name that is none of these.
    """
    kind, _, folder = name.partition(":")
    if kind == "minilm":
        return MiniLM(folder)
    if family_of(name) or name in SHORT or "/" in name or (name and Path(name).is_dir()):
        return SentenceEncoder(name)
    known = [*(key for key in ENCODERS if key == "minilm"), *SHORT, "e5-base-v2", "bge-base-en-v1.5"]
    raise ConfigError(
        f"unknown encoder {name!r}{nearest(name, known)} (or a Hugging Face name with its owner, or a folder)"
    )
