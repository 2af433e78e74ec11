"""open_encoder: the encoder for a name on a command line or in an index."""

from pathlib import Path

from sleuth.encoders.base import Encoder
from sleuth.encoders.families import SHORT, family_of
from sleuth.encoders.minilm import MiniLM
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.errors import ConfigError
from sleuth.registry import nearest


def open_encoder(name: str) -> Encoder:
    """The encoder, not yet loaded, for "minilm", "minilm:FOLDER", a family name, a hub name or a folder."""
    kind, _, folder = name.partition(":")
    if kind == "minilm":
        return MiniLM(folder)
    if family_of(name) or "/" in name or (name and Path(name).is_dir()):
        return SentenceEncoder(name)
    known = ["minilm", *SHORT, "e5-base-v2", "bge-base-en-v1.5"]
    raise ConfigError(
        f"unknown encoder {name!r}{nearest(name, known)} (or OWNER/NAME of the hub, or a folder)"
    )
