"""Attention of grouped heads without copies: on CPU, keys and values are read where they lie.

transformers repeats the keys and values of grouped-query models for every query head whenever a
mask is given; over a cache of many contexts that copy costs more than the attention itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

NAME = "sleuth_grouped"
_PLAIN = {
    "dropout",
    "scaling",
    "is_causal",
    "position_ids",
    "use_cache",
    "output_attentions",
    "sliding_window",
}
"""Arguments that change nothing here: masks are explicit, and nothing is dropped while generating."""


def grouped_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Queries [B, H, S, D], keys and values [B, H', L, D], mask [B, 1, S, L] → [B, S, H, D].

    What this is not made for (other devices, no mask, capped scores, biases) goes to transformers' own.
    """
    unusual = any(value is not None for name, value in options.items() if name not in _PLAIN)
    if unusual or attention_mask is None or query.device.type != "cpu":
        other: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        return other
    out = scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, scale=options.get("scaling"), enable_gqa=True
    )
    return out.transpose(1, 2).contiguous(), None


@contextmanager
def grouped(config: Any) -> Iterator[None]:
    """The model of this config attends through `grouped_attention`, if it otherwise would through sdpa."""
    before = config._attn_implementation
    if before != "sdpa":
        yield
        return
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


AttentionInterface.register(NAME, grouped_attention)
