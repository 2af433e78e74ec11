"""Exports inside verl 0.9 on a CPU: its config, data set, agent loop worker, estimator, losses and model merger."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

verl = pytest.importorskip("verl", reason="verl is not installed: make test-verl")

from verl.experimental.agent_loop.agent_loop import AgentLoopWorker  # noqa: E402
from verl.protocol import DataProto  # noqa: E402
from verl.trainer.ppo.core_algos import agg_loss, get_adv_estimator_fn, get_policy_loss_fn, kl_penalty  # noqa: E402
from verl.trainer.ppo.ray_trainer import compute_advantage  # noqa: E402
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_add_to_batch  # noqa: E402
from verl.trainer.ppo.utils import need_critic, need_reference_policy  # noqa: E402
from verl.utils.config import omega_conf_to_dataclass, validate_config  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn  # noqa: E402
from verl.utils.tensordict_utils import list_of_dict_to_tensordict  # noqa: E402

from sleuth.algorithms.base import TokenBatch  # noqa: E402
from sleuth.algorithms.grpo import GRPO  # noqa: E402
from sleuth.engines.models import load_model  # noqa: E402
from sleuth.engines.scripted import ScriptedEngine  # noqa: E402
from sleuth.episodes.limits import Limits  # noqa: E402
from sleuth.episodes.world import World  # noqa: E402
from sleuth.errors import RetrievalError  # noqa: E402
from sleuth.integrations.verl import advantage, agent_loop  # noqa: E402
from sleuth.recipe import Recipe  # noqa: E402
from sleuth.recipes import load_recipe  # noqa: E402
from sleuth.retrievers.base import Retriever  # noqa: E402
from sleuth.rewards.base import score_all  # noqa: E402
from sleuth.rollouts.run import play_all  # noqa: E402
from sleuth.types import Hit, Passage, Question, Score, Segment, Trajectory  # noqa: E402
from support.models import LLAMA, TOKENIZER  # noqa: E402
from support.verl_inside import EVIOMNI, SEARCH_R1, Servers, config_of  # noqa: E402

Export = Callable[..., Path]


@pytest.mark.parametrize("words", [[], ["--engine", "sglang"], ["--set", "scale.lora_rank=4"]])
@pytest.mark.parametrize("recipe", ["search-r1/paper", "eviomni/paper", "arena/paper", "evinote-rag/code"])
def test_verl_accepts_the_settings(recipe: str, words: list[str], export: Export):
    folder = export(recipe, *words)
    config, method = config_of(folder), load_recipe(str(folder))
    assert need_reference_policy(config) == method.algorithm.needs_reference
    assert not need_critic(config)
    if "scale.lora_rank=4" not in words:  # that check of verl imports vLLM
        validate_config(config, use_reference_policy=True, use_critic=False)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    assert (actor.ppo_mini_batch_size, actor.ppo_epochs, rollout.n) == (4, 1, method.algorithm.group_size)
    assert (actor.engine.dtype, actor.optim.clip_grad) == ("bfloat16", 1.0)
    assert rollout.prompt_length + 200 == rollout.response_length == rollout.max_model_len == 4000
    env = config.ray_kwargs.ray_init.runtime_env.env_vars
    assert advantage.__name__ == env.VERL_USE_EXTERNAL_MODULES


def test_verl_imports_the_estimator_by_itself():
    code = "import verl.trainer.ppo.core_algos as c; print(c.get_adv_estimator_fn('sleuth_grpo').__module__)"
    env = os.environ | {"VERL_USE_EXTERNAL_MODULES": advantage.__name__}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == advantage.__name__


class Down(Retriever):
    """Fails."""

    def search(self, queries: Any, k: int) -> list[list[Hit]]:
        raise RetrievalError("the server is down")


class Encyclopedia(Retriever):
    """Passages about two countries; fails for the question about Chile."""

    def for_question(self, question: Question) -> Retriever:
        return Down() if "Chile" in question.text else self

    def search(self, queries: Any, k: int) -> list[list[Hit]]:
        texts = ["Paris is the seat of France.", "Tokyo is the seat of Japan."]
        return [[Hit(Passage(str(i), "", text), 1.0) for i, text in enumerate(texts)] for _ in queries]


def played_here(recipe: Recipe, questions: list[Question], engine: ScriptedEngine) -> list[Trajectory]:
    """The episodes as Sleuth plays and scores them."""
    world = World(recipe.protocol, engine, recipe.retriever, Limits.of(recipe.scale)).sampled(1.0)
    played = play_all([lambda q=q: world.episode(q) for q in questions])
    scores = score_all(recipe.reward, played, engine)
    return [t.scored(s) for t, s in zip(played, scores, strict=True)]


@pytest.mark.parametrize(
    ("name", "script", "usable"),
    [("search-r1/paper", SEARCH_R1, [1, 1, 1, 0]), ("eviomni/paper", EVIOMNI, [1, 1, 1, 0])],
)
def test_episodes_rewards_and_advantages_are_those_of_sleuth(
    name: str, script: Any, usable: list[int], export: Export, monkeypatch: pytest.MonkeyPatch
):
    folder = export(name)
    recipe = load_recipe(str(folder)).but(retriever=Encyclopedia())
    scorer = agent_loop.Scorer(recipe.reward)
    monkeypatch.setattr(agent_loop, "opened", lambda _: (recipe, scorer))
    config = config_of(folder)
    servers = Servers(script)

    data = RLHFDataset(str(folder / "train.parquet"), TOKENIZER, config.data)
    rows = DataProto.from_single_dict(collate_fn([data[i] for i in range(len(data))]))
    worker = AgentLoopWorker(config, servers)
    batch = asyncio.run(worker.generate_sequences(rows))
    probes = servers.temperatures.count(0.0)

    texts = [row["extra_info"]["question"] for row in data.dataframe]
    mine = played_here(
        recipe, [agent_loop.msgspec.json.decode(t, type=Question) for t in texts], servers.engine
    )
    assert [not t.fault and not t.score.invalid for t in mine] == [bool(u) for u in usable]
    assert probes == (4 if name.startswith("eviomni") else 0)
    for row, trajectory in enumerate(mine):
        attention = batch.batch["attention_mask"][row].bool()
        assert batch.batch["input_ids"][row][attention].tolist() == (trajectory.tokens or [0, 0])
        response = batch.batch["response_mask"][row]
        policy = trajectory.loss_mask if usable[row] else []
        mask = policy[len(trajectory.segments[0].tokens) :] if policy else []
        assert response[: len(mask)].bool().tolist() == mask
        assert not response[len(mask) :].any()
        expected = trajectory.score.total if usable[row] else 0.0
        assert batch.batch["rm_scores"][row].sum().item() == pytest.approx(expected)
        written = response.bool()
        tokens = batch.batch["responses"][row][written]
        assert batch.batch["rollout_log_probs"][row][written].tolist() == pytest.approx(
            (-tokens / 1000).tolist()
        )
    assert batch.non_tensor_batch["min_global_steps"][:3].tolist() == [5, 5, 5]
    assert batch.non_tensor_batch["usable"].tolist() == usable

    batch.batch["token_level_rewards"] = batch.batch["rm_scores"]
    batch.non_tensor_batch["uid"] = np.array(["group"] * len(mine), dtype=object)
    estimator = config.algorithm.adv_estimator
    found = compute_advantage(batch, estimator, config=config.algorithm).batch["advantages"]
    signals = {s.trajectory.question.id: s.weights for s in recipe.algorithm.signals([mine])}
    for row, trajectory in enumerate(mine):
        weights = found[row][batch.batch["response_mask"][row].bool()].tolist()
        assert weights == pytest.approx(list(signals.get(trajectory.question.id, ())), abs=1e-5)


def test_an_episode_that_wrote_nothing_has_one_masked_token():
    empty = Trajectory(Question("q", "?", ("a",)), (), fault="retrieval failed")
    output = agent_loop.output_of(empty, [0], agent_loop.AgentLoopMetrics())
    assert (output.prompt_ids, output.response_ids, output.response_mask) == ([0], [0], [0])
    prompt, turn = Segment("prompt", "p", (1, 2)), Segment("policy", "ab", (3, 4))
    whole = Trajectory(Question("q", "?", ("a",)), (prompt, turn), score=Score(0.5, {}))
    second = agent_loop.output_of(whole, [2, 3], agent_loop.AgentLoopMetrics())
    assert second.response_logprobs is None
    # As verl's default trainer stores them.
    stored = [one.as_dict() for one in (second, output.model_copy(update={"response_logprobs": None}))]
    assert stored[0]["rm_scores"].tolist() == [0.0, 0.5]
    assert stored[0]["extra_fields"]["max_global_steps"] == 3
    assert len(list_of_dict_to_tensordict([stored[0], dict(stored[0])])) == 2


def scored(reward: float, length: int, fault: str = "") -> Trajectory:
    segments = (Segment("prompt", "p", (0,)), Segment("policy", "x" * length, (1,) * length))
    return Trajectory(Question("q", "?", ("a",)), segments, fault=fault, score=Score(reward, {}))


@given(
    rewards=st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.49, 0.51, 1.0, -2.0]), st.booleans()), min_size=2, max_size=12
    ),
    scale=st.sampled_from(["std", "std_floor", "none"]),
)
def test_advantages_are_those_of_sleuth(rewards: list[tuple[float, bool]], scale: Any):
    group = [scored(r, 1 + i % 3, "" if sound else "down") for i, (r, sound) in enumerate(rewards)]
    grpo = GRPO(scale=scale, std_floor=0.2)
    mask = torch.tensor([[not t.fault and j < t.response_length for j in range(3)] for t in group])
    token_level = torch.zeros(mask.shape)
    token_level[:, -1] = torch.tensor([r for r, _ in rewards])
    settings = {"sleuth": {"scale": scale, "std_floor": 0.2}}
    index = np.array(["u"] * len(group), dtype=object)
    found, _ = get_adv_estimator_fn("sleuth_grpo")(token_level, mask.long(), index=index, config=settings)
    expected = [w for signal in grpo.signals([group]) for w in signal.weights]
    assert found[mask].tolist() == pytest.approx(expected, abs=1e-4)
    assert not found[~mask].any()
    if scale == "std" and all(sound for _, sound in rewards) and len({r for r, _ in rewards}) > 1:
        stock, _ = get_adv_estimator_fn("grpo")(token_level, mask.long(), index=index)
        assert torch.allclose(found, stock, atol=1e-4)


@pytest.mark.parametrize("recipe", ["search-r1/paper", "eviomni/paper", "arena/paper"])
@pytest.mark.parametrize("off_policy", [False, True])
@pytest.mark.parametrize("bound", [0.0, 2.0])
def test_policy_loss_kl_and_correction_are_those_of_sleuth(
    recipe: str, off_policy: bool, bound: float, export: Export
):
    folder = export(recipe, "--set", f"algorithm.engine_ratio_max={bound}")
    config = config_of(folder)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    grpo = load_recipe(str(folder)).algorithm
    assert isinstance(grpo, GRPO)
    random = torch.Generator().manual_seed(1)

    def drawn() -> torch.Tensor:
        return torch.randn((5, 9), generator=random)

    mask = torch.rand((5, 9), generator=random) < 0.7
    logprobs, advantages = drawn() - 3, 2 * drawn() * mask
    reference = logprobs + drawn().clamp(-2, 2)  # verl cuts k3 at 10, which log-ratios below -2.6 exceed
    # Far from the policy, so that verl's second clip at ratios above 3 would show.
    old = logprobs + 1.5 * drawn() if off_policy else logprobs.clone()
    engine = old + drawn()
    signals = [SimpleNamespace(weights=(0.0,) * int(row.sum())) for row in mask]

    def sleuths(policy: torch.Tensor) -> torch.Tensor:
        batch = TokenBatch(
            policy, mask, advantages, old if off_policy else None, reference, engine_logprobs_N_T=engine
        )
        return grpo.loss(batch, grpo.normaliser(signals)).value

    def verls(policy: torch.Tensor) -> torch.Tensor:
        tensors = {"old_log_probs": old, "rollout_log_probs": engine, "response_mask": mask.long()}
        data = DataProto.from_single_dict(tensors)
        data, _ = compute_rollout_correction_and_add_to_batch(data, config.algorithm.rollout_correction)
        mode = actor.loss_agg_mode
        loss, _ = get_policy_loss_fn(actor.policy_loss.loss_mode)(
            old, policy, advantages, mask, mode, actor, data.batch.get("rollout_is_weights", None)
        )
        return loss + actor.kl_loss_coef * agg_loss(
            kl_penalty(policy, reference, actor.kl_loss_type), mask, mode
        )

    values, gradients = [], []
    for compute in (sleuths, verls):
        policy = logprobs.clone().requires_grad_()
        loss = compute(policy)
        loss.backward()
        values.append(loss.item())
        gradients.append(policy.grad)
    assert values[0] == pytest.approx(values[1], abs=1e-5)
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6)
    assert gradients[0].abs().sum() > 0


def test_a_merged_checkpoint_makes_the_folder_a_run(export: Export, tiny_model: Path):
    folder = export("search-r1/paper")
    saved = folder / "checkpoints" / "global_step_1" / "actor"
    saved.mkdir(parents=True)
    # One rank's shard, as verl's FSDP engine saves it.
    torch.save(LLAMA.state_dict(), saved / "model_world_size_1_rank_0.pt")
    (saved / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 1, "world_size": 1}))
    shutil.copytree(tiny_model, saved / "huggingface", ignore=shutil.ignore_patterns("*.safetensors"))
    merge = ["merge", "--backend", "fsdp", "--local_dir", str(saved), "--target_dir", str(folder / "model")]
    subprocess.run([sys.executable, "-m", "verl.model_merger", *merge], capture_output=True, check=True)
    model, tokenizer = load_model(str(folder / "model"))
    tokens = torch.tensor([tokenizer("capital of France").input_ids])
    assert torch.allclose(model(tokens).logits, LLAMA(tokens).logits, atol=0.1)  # the merger writes bfloat16
