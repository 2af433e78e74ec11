"""EVO-RAG's loop on a policy that chooses among whole turns, small enough to learn within seconds."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sleuth.encoders.lexical import LexicalEncoder
from sleuth.engines.base import Completion, Engine, Request, Sampling
from sleuth.engines.scripted import ByteTokenizer
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, TrainingError
from sleuth.recipes.evo_rag.curriculum import Curriculum
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.recipes.evo_rag.preference_model import PreferenceModel
from sleuth.recipes.evo_rag.protocol import BACKTRACK, EvoRAG
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.recipes.evo_rag.siblings import candidates_of
from sleuth.retrievers.given import GivenParagraphs
from sleuth.rollouts.transcript import read_transcript
from sleuth.scale import Scale
from sleuth.training.loop import Parts, train
from sleuth.training.policy import Policy
from sleuth.training.runs.log import RunLog
from sleuth.training.runs.phase import TrainResult
from sleuth.training.update.gradients import compute_logprobs
from sleuth.types import Passage, Question, Segment, Trajectory
from support import toy
from support.toy import rows, weights

TURNS = [
    "<think>a</think><search>dogs</search>",
    "<think>b</think><search>cats</search>",
    f"<think>c</think>{BACKTRACK}",
    "<think>d</think><answer>x</answer>",
    "<think>e</think><answer>y</answer>",
]
PASSAGES = (Passage("d", "Dogs", "About dogs."), Passage("c", "Cats", "About cats."))
QUESTIONS = [Question(f"q{i}", f"{i}?", ("x",), PASSAGES, ("d",)) for i in range(6)]
REWARD = EvoRAGReward(Curriculum("none", max_steps=3), encoder=LexicalEncoder())
PROTOCOL = EvoRAG("{question}", invalid_message="\nno\n")
ALGORITHM = DPO(group_size=3, update_pairs=4, head_lr=1e-2)
PLAN = Scale(
    model="toy",
    train_data="",
    eval_data="",
    top_k=1,
    max_steps=3,
    max_new_tokens=60,
    max_context=512,
    steps=3,
    batch=2,
    rollout_batch=8,
    micro_batch_tokens=4096,
    lr=2e-3,
    save_every=1,
    dev_questions=2,
    patience=2,
)
BYTES = ByteTokenizer()


class Menu(Engine):
    """Samples whole turns in proportion to the policy's mean log-probability of their tokens."""

    name, tokenizer, context_length = "menu", BYTES, 512

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        context = Segment("prompt", "", tuple(request.tokens))
        options = [
            Trajectory(QUESTIONS[0], (context, Segment("policy", "", tuple(BYTES.encode(text)))))
            for text in TURNS
        ]
        means = [float(values.mean()) for values in compute_logprobs(self.policy, options)]
        weights = [math.exp(10 * mean) for mean in means]
        text = (
            TURNS[weights.index(max(weights))]
            if sampling.temperature == 0
            else random.Random(request.seed).choices(TURNS, weights)[0]
        )
        tokens = tuple(BYTES.encode(text))
        return Completion(tokens, (0.0,) * len(tokens), text, tuple(range(1, len(tokens) + 1)), "stop")


def new_policy() -> Policy:
    return Policy(toy.model(vocab_size=262, max_position_embeddings=512), precision="float32")


def run(folder: Path, **options: object) -> tuple[TrainResult, Policy, str]:
    policy = new_policy()
    algorithm = options.pop("algorithm", ALGORITHM)
    reward = options.pop("reward", REWARD)
    questions = options.pop("questions", QUESTIONS)
    plan = replace(PLAN, **{k: options.pop(k) for k in list(options) if k in Scale.__dataclass_fields__})
    world = World(PROTOCOL, Menu(policy), GivenParagraphs(), Limits.of(plan))
    parts = Parts(questions, world, reward, algorithm)  # type: ignore[arg-type]
    console = toy.quiet()
    with RunLog(folder, console=console) as log:
        result = train(policy, parts, plan, log, **options)  # type: ignore[arg-type]
    return result, policy, toy.shown(console)


def test_two_stages_of_cycles(tmp_path: Path):
    result, policy, shown = run(tmp_path)
    assert result.stopped == "done"
    found = rows(tmp_path)
    assert {row["phase"] for row in found} == {"stage_1", "stage_2"}
    for row in found:
        assert row["update/pairs"] > 0
        assert 0 <= row["update/answer_over_search"] + row["update/search_over_answer"] <= 1
        assert row["preference/pairs"] > 0
        assert 0 <= row["preference/accuracy"] <= 1
        assert 0 <= row["dev/em"] <= 1
        assert row["rollouts/episodes"] == PLAN.batch
    assert "the best weights are those of step" in shown
    kept = {path.name for path in (tmp_path / "rollouts").iterdir()}
    assert {"stage_1-step-000001.jsonl", "stage_2-step-000001.jsonl"} <= kept
    assert not torch.equal(weights(policy), weights(new_policy()))


def test_a_stage_ends_when_dev_em_stalls_and_keeps_its_best(tmp_path: Path):
    # Learning nothing (lr 0), no cycle is better than the start.
    result, policy, shown = run(tmp_path, lr=0.0, steps=5)
    steps = [(row["phase"], row["step"]) for row in rows(tmp_path)]
    assert steps == [("stage_1", 1), ("stage_1", 2), ("stage_2", 1), ("stage_2", 2)]
    assert result.steps == 4
    assert shown.count("the best weights are those of step 0") == 2
    assert torch.equal(weights(policy), weights(new_policy()))


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path):
    whole = run(tmp_path / "whole")[1]
    asked = iter([False] * 40 + [True] * 1000)
    first, _, _ = run(tmp_path / "cut", stop=lambda: next(asked))
    assert first.stopped == "interrupted"
    second, resumed, _ = run(tmp_path / "cut")
    assert second.stopped == "done"
    assert torch.equal(weights(resumed), weights(whole))
    columns = ("phase", "step", "update/loss", "preference/loss", "dev/em")
    assert [[row[c] for c in columns] for row in rows(tmp_path / "cut")] == [
        [row[c] for c in columns] for row in rows(tmp_path / "whole")
    ]
    lines = rows(tmp_path / "cut")
    assert torch.equal(weights(run(tmp_path / "cut")[1]), weights(whole)), "nothing is left to do"
    assert rows(tmp_path / "cut") == lines


def test_a_step_that_was_given_up_does_not_teach_the_preference_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = {"steps": 2, "save_every": 0, "dev_questions": 0}
    run(tmp_path / "whole", **plan)
    fit, fitted = PreferenceModel.fit, []
    monkeypatch.setattr(PreferenceModel, "fit", lambda *a: fitted.append(1) or fit(*a))
    first, _, _ = run(tmp_path / "cut", stop=lambda: len(fitted) == 2, **plan)  # before the second update
    assert (first.steps, first.stopped) == (1, "interrupted")
    run(tmp_path / "cut", **plan)
    found = [[row["preference/loss"] for row in rows(tmp_path / name)] for name in ("cut", "whole")]
    assert found[0] == found[1]


def test_the_preference_model_may_rank_the_policys_pairs(tmp_path: Path):
    result, _, _ = run(tmp_path, algorithm=replace(ALGORITHM, preference="reward_model", margin=0.0), steps=1)
    assert result.stopped == "done"
    assert all(row["update/pairs"] > 0 for row in rows(tmp_path))


def test_a_state_with_a_branch_that_cannot_be_scored_does_not_train(tmp_path: Path):
    lost = replace(QUESTIONS[0], gold_ids=("elsewhere",))
    tree = [read_transcript(PROTOCOL, lost, [("model", TURNS[i])]) for i in (3, 4, 0)]
    branches = tuple(t.scored(score) for t, score in zip(tree, REWARD.score(tree), strict=True))
    assert branches[2].score is not None
    assert "elsewhere" in branches[2].score.invalid
    assert candidates_of([replace(t, fork=1) for t in branches]) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_steps": 4}, "set reward.curriculum.max_steps"),
        ({"temperature": 0.0}, "temperature above 0"),
        ({"lr_schedule": "cosine"}, "must be constant"),
    ],
)
def test_parts_that_cannot_train_in_this_way(tmp_path: Path, options: dict[str, object], reason: str):
    with pytest.raises((ConfigError, TrainingError), match=reason):
        run(tmp_path, **options)
