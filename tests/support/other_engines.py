"""Checks of engines with a copy of the weights: equal tokens and log-probabilities, changes, seeds."""

from typing import Any

import pytest
import torch

from sleuth.engines.base import Request, Sampling
from sleuth.engines.transformers import TransformersEngine
from sleuth.training.policy import Policy
from support.models import TOKENIZER

PROMPTS = ["The capital of France is", "Zürich, Αθήνα, 東京", "<search>capital", "São Paulo and Paris"]


def own(policy: Policy) -> TransformersEngine:
    return TransformersEngine(policy.model, TOKENIZER)


def requests(count: int = len(PROMPTS)) -> list[Request]:
    return [Request(TOKENIZER.encode(text), seed=i) for i, text in enumerate(PROMPTS[:count])]


def assert_equal(engine: Any, policy: Policy, sampling: Sampling) -> list[Any]:
    """Tokens, ends and reasons are those of our decoder, log-probabilities within 1e-3."""
    found, wanted = engine.generate(requests(), sampling), own(policy).generate(requests(), sampling)
    for theirs, ours in zip(found, wanted, strict=True):
        assert (theirs.tokens, theirs.text, theirs.ends) == (ours.tokens, ours.text, ours.ends)
        assert theirs.stop == ours.stop
        assert theirs.logprobs == pytest.approx(ours.logprobs, abs=1e-3)
    return found


def assert_tempered(engine: Any, policy: Policy, temperature: float) -> None:
    """Samples do not depend on their batch, and their log-probabilities are those of the temperature."""
    sampling = Sampling(12, temperature=temperature)
    found = engine.generate(requests(), sampling)
    assert [done.tokens for done in engine.generate(requests()[::-1], sampling)[::-1]] == [
        done.tokens for done in found
    ]
    for request, done in zip(requests(), found, strict=True):
        tokens = [*request.tokens, *done.tokens]
        with torch.no_grad():
            logits = policy.model(torch.tensor([tokens])).logits[0, len(request.tokens) - 1 : -1]
        wanted = (logits / temperature).log_softmax(-1).gather(1, torch.tensor(done.tokens)[:, None])[:, 0]
        assert done.logprobs == pytest.approx(wanted.tolist(), abs=1e-3)


def change(policy: Policy) -> None:
    """One update of every weight, as an optimiser makes it."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
