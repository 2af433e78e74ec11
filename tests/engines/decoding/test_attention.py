"""Grouped attention against transformers' own, which repeats keys and values."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from sleuth.engines.decoding.attention import BLOCK, FEW, LONGEST, NAME, grouped, grouped_attention


class Module(torch.nn.Module):
    num_key_value_groups = 3
    is_causal = True


@pytest.mark.parametrize("columns", [1, 4, FEW, FEW + 1])
def test_values_are_those_of_repeated_heads(columns: int):
    torch.manual_seed(0)
    query = torch.randn(2, 6, columns, 8)
    # A view into a larger cache, as the slot cache gives.
    key, value = (torch.randn(5, 2, 32, 8)[:2, :, :11] for _ in range(2))
    mask = torch.zeros(2, 1, columns, 11).masked_fill_(
        torch.rand(2, 1, columns, 11) < 0.3, torch.finfo(torch.float32).min
    )
    ours, _ = grouped_attention(Module(), query, key, value, mask, scaling=0.3, dropout=0.0)
    theirs, _ = sdpa_attention_forward(Module(), query, key, value, mask, scaling=0.3, dropout=0.0)
    assert torch.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [2, BLOCK, BLOCK + 1, 2 * BLOCK + 9])
@pytest.mark.parametrize("before", [0, 7])
def test_without_a_mask_attention_is_causal_from_the_last_token(
    columns: int, before: int, dtype: torch.dtype
):
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(2, heads, length, 8, dtype=dtype, requires_grad=True)
        for heads, length in ((6, columns), (2, columns + before), (2, columns + before))
    )
    mask = torch.full((columns, columns + before), torch.finfo(dtype).min, dtype=dtype).triu(before + 1)
    output = []
    for function, given in ((grouped_attention, None), (sdpa_attention_forward, mask[None, None])):
        out, _ = function(Module(), query, key, value, given, scaling=0.3)
        gradients = torch.autograd.grad(out.float().square().sum(), (query, key, value))
        output.append([out, *gradients])
    for ours, theirs in zip(*output, strict=True):
        error = (ours - theirs).float().norm() / theirs.float().norm()
        assert error < (1e-5 if dtype == torch.float32 else 0.02)


@pytest.mark.parametrize(
    ("dtype", "columns", "option"),
    [
        (torch.float32, FEW + 1, {}),
        (torch.bfloat16, LONGEST + 1, {}),
        (torch.float32, 4, {"something_new": 50.0}),
    ],
)
@pytest.mark.parametrize("before", [0, 3])
def test_unusual_and_long_calls_and_float32_prefills_are_left_to_transformers(
    dtype: torch.dtype, columns: int, option: dict[str, float], before: int
):
    torch.manual_seed(0)
    query = torch.randn(1, 3, columns, 8, dtype=dtype)
    key = torch.randn(1, 1, columns + before, 8, dtype=dtype)
    mask = torch.full((columns, columns + before), torch.finfo(dtype).min, dtype=dtype).triu(before + 1)
    ours, _ = grouped_attention(Module(), query, key, key, None, **option)
    theirs, _ = sdpa_attention_forward(Module(), query, key, key, mask[None, None])
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_the_config_is_handed_back():
    config: Any = SimpleNamespace(_attn_implementation="sdpa")
    seen = []

    def fail() -> None:
        with grouped(config):
            seen.append(config._attn_implementation)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [NAME]
    assert config._attn_implementation == "sdpa"
    config._attn_implementation = "eager"
    with grouped(config):
        assert config._attn_implementation == "eager"
