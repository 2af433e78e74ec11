"""Attention of grouped heads without copies: on CPU, keys and values are read where they are.

transformers repeats the keys and values of grouped-query models for every query head whenever a
mask is given; over a cache of many contexts that copy costs more than the attention itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

NAME = "sleuth_grouped"
FEW = 9
"""Most query columns of a decoding step; for so few, torch's CPU flash attention is slower than two products."""
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

    Calls with other devices, no mask, capped scores or biases are left to transformers' own function.
    """
    unusual = any(value is not None for name, value in options.items() if name not in _PLAIN)
    if unusual or attention_mask is None or query.device.type != "cpu":
        other: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        return other
    scaling = options.get("scaling")
    if query.shape[2] <= FEW:
        out = _two_products(query, key, value, attention_mask, scaling or query.shape[3] ** -0.5)
    else:
        out = scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=True
        )
    return out.transpose(1, 2).contiguous(), None


def _two_products(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float) -> Tensor:
    """The same attention [B, H, S, D] as two batched matrix products, with the softmax in float32."""
    batch, heads, columns, _ = query.shape
    groups, length = key.shape[1:3]
    rows = heads // groups * columns  # all queries that read one head's keys
    scores = torch.bmm(query.reshape(batch * groups, rows, -1), key.flatten(0, 1).transpose(1, 2))
    masked = scores.view(batch, groups, -1, columns, length).float() * scaling + mask[:, :, None]
    weights = masked.softmax(-1).to(value.dtype).view(batch * groups, rows, length)
    return torch.bmm(weights, value.flatten(0, 1)).view(query.shape)


@contextmanager
def grouped(config: Any) -> Iterator[None]:
    """Make the model of this config attend through `grouped_attention` where it otherwise used sdpa."""
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
