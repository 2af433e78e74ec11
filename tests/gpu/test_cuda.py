"""Engine, update, judge and encoder on CUDA against the CPU, in float32; skipped on a machine without a GPU."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from sleuth.algorithms.grpo import GRPO
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.transformers import TransformersEngine
from sleuth.judges.nli import NLIJudge
from sleuth.training.policy import Policy
from sleuth.training.update.gradients import accumulate_gradients, compute_logprobs
from sleuth.types import Question, Segment, Signal, Trajectory
from support import toy
from support.models import TOKENIZER, build_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine or this torch has no CUDA"),
]
DEVICES = ("cpu", "cuda")
TEXTS = ["Paris is the capital of France.", "Who wrote it?", ""]


def test_the_decoder_writes_the_same_tokens():
    # Of these seeds no random number is nearer than 5e-5 to the edge between two tokens, where rounding would decide.
    seeds = range(216, 225)
    requests = [
        Request(TOKENIZER.encode("The capital of France"[: 8 + i]), seed=s) for i, s in enumerate(seeds)
    ]

    def written(device: str, temperature: float) -> list[Completion]:
        engine = TransformersEngine(build_model().to(device), TOKENIZER)
        return engine.generate(requests, Sampling(40, temperature=temperature, stop=("e",)))

    for temperature in (0.0, 0.9):
        for one, other in zip(*(written(device, temperature) for device in DEVICES), strict=True):
            assert (one.tokens, one.stop) == (other.tokens, other.stop)
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_a_released_engine_leaves_its_memory_to_others():
    engine = TransformersEngine(build_model().to("cuda"), TOKENIZER)
    engine.generate([Request((1, 2, 3), seed=i) for i in range(200)], Sampling(200))
    held = torch.cuda.memory_reserved()
    engine.release()
    assert torch.cuda.memory_reserved() < held


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_an_update_has_the_same_gradients(rank: int, checkpointing: bool):
    prompt = Segment("prompt", "", tuple(range(12)))
    rows = [Trajectory(Question("q", "?", ()), (prompt, Segment("policy", "", (i, 3, 5)))) for i in range(4)]
    signals = [Signal(row, (1.0 - 0.7 * i,) * 3) for i, row in enumerate(rows)]

    def gradients(device: str) -> torch.Tensor:
        options: dict[str, Any] = {"precision": "float32", "gradient_checkpointing": checkpointing}
        policy = Policy(toy.model().to(device), lora_rank=rank, **options)  # type: ignore[arg-type]
        policy.freeze_reference()
        ref = compute_logprobs(policy, rows, reference=True)
        accumulate_gradients(policy, GRPO(beta=0.1), signals, ref_logprobs=ref)
        return torch.cat(
            [p.grad.flatten().cpu() for p in policy.trainable_parameters() if p.grad is not None]
        )

    one, other = (gradients(device) for device in DEVICES)
    assert float((one - other).norm() / one.norm()) < 1e-4


def test_a_run_trains_saves_and_resumes(tmp_path: Path):
    def learner() -> tuple[Policy, TransformersEngine]:
        module, tokenizer = toy.model().to("cuda"), toy.tokenizer()  # type: ignore[arg-type]
        policy = Policy(module, tokenizer)
        assert policy.autocast_dtype == torch.bfloat16
        return policy, TransformersEngine(module, tokenizer, autocast=policy.autocast_dtype)

    toy.run(tmp_path, learner=learner(), steps=2)
    result = toy.run(tmp_path, learner=learner(), steps=3)
    assert (result.steps, result.stopped) == (3, "done")
    assert [row["update/dropped"] for row in toy.rows(tmp_path)] == [0, 0, 0]


def test_a_judge_gives_the_same_probabilities(tmp_path: Path):
    from transformers import LlamaForSequenceClassification

    config = copy.deepcopy(build_model().config)
    config.num_labels, config.pad_token_id = 2, TOKENIZER.pad_token_id
    config.id2label = {0: "entailment", 1: "not_entailment"}
    LlamaForSequenceClassification(config).save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    pairs = [(text, claim) for text in TEXTS for claim in TEXTS[:2]]
    one, other = (NLIJudge(str(tmp_path), device=device).entailment(pairs) for device in DEVICES)
    assert one == pytest.approx(other, abs=1e-4)


def test_an_encoder_gives_the_same_vectors(tmp_path: Path):
    build_model().model.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    one, other = (SentenceEncoder(str(tmp_path), device=device).encode(TEXTS) for device in DEVICES)
    assert one == pytest.approx(other, abs=1e-4)
