"""Grouped attention against transformers' own, which repeats keys and values."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from sleuth.engines.attention import FEW, NAME, grouped, grouped_attention


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


@pytest.mark.parametrize("option", [{}, {"something_new": 50.0}])
def test_unusual_calls_are_left_to_transformers(option: dict[str, float]):
    torch.manual_seed(0)
    query, key = torch.randn(1, 6, 4, 8), torch.randn(1, 2, 4, 8)
    mask = torch.zeros(1, 1, 4, 4) if option else None  # without a mask attention is causal
    ours, _ = grouped_attention(Module(), query, key, key, mask, **option)
    theirs, _ = sdpa_attention_forward(Module(), query, key, key, mask)
    assert torch.equal(ours, theirs)


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
