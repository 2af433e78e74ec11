"""Suitability: whether a model may be run over keys and values that Sleuth keeps, by its config and by a trial.

Engine and trainer share these reasons: both replace a model's own cache and give an explicit mask.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

FULL, SLIDING = "full_attention", "sliding_attention"
WINDOW_IN_ALL_LAYERS = ("mistral", "mixtral", "phi3", "starcoder2")
"""Model types whose config gives a sliding window but no layer types."""


def unsuited(model: Any, *, windows: bool) -> str:
    """Why a model needs its own cache; "" if all its layers are attention that a mask can describe.

    `windows`: whether the caller's masks describe sliding windows.
    """
    config = model.config.get_text_config(decoder=True)
    attention = getattr(config, "_attn_implementation", None)
    kinds = getattr(config, "layer_types", None) or []
    other = sorted(set(kinds) - ({FULL, SLIDING} if windows else {FULL}))
    window = 0 if kinds or not getattr(config, "use_sliding_window", True) else config_window(config)
    missing = sorted({"position_ids", "attention_mask"} - set(inspect.signature(model.forward).parameters))
    reasons = {
        f"{attention} attention takes no explicit mask": attention not in ("sdpa", "eager"),
        f"{', '.join(other)} layers": bool(other),
        f"its layers have a sliding window of {window}": bool(window) and not windows,
        f"which layers have the sliding window of {window} is not known": bool(window)
        and config.model_type not in WINDOW_IN_ALL_LAYERS,
        f"its forward takes no {', '.join(missing)}": bool(missing),
        "recurrent state": bool(getattr(model, "_is_stateful", False)),
        "layers that share keys and values": bool(getattr(config, "num_kv_shared_layers", 0)),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def config_window(config: Any) -> int:
    """Tokens that a sliding-window layer looks back, itself included; 0 = all."""
    return int(getattr(config, "sliding_window", None) or 0)


def mismatch(cache: str, compute: Callable[[], Tensor], plain: Tensor, dtype: torch.dtype) -> str:
    """Why numbers computed through a cache differ from those of a plain pass; "" if they agree.

    `dtype` is that of the arithmetic, which decides how much rounding is accepted.
    """
    try:
        found = compute()
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        return f"its code does not take the {cache}: {str(error).splitlines()[0]}"
    expected = plain.double()
    difference = float((found.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-30))
    tolerance = 1e-3 if dtype in (torch.float32, torch.float64) else 0.1
    return "" if difference <= tolerance else f"its numbers through the {cache} are off by {difference:.2g}"
