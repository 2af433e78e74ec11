"""verl's default trainer on a CPU, with Ray and TransferQueue but without model workers: rollouts up to advantages."""

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl", reason="verl is not installed: make test-verl")
tq = pytest.importorskip("transfer_queue", reason="TransferQueue is not installed: make test-verl")
ray = pytest.importorskip("ray")

from verl.trainer.ppo.v1 import AgentLoopManagerTQ, PPOTrainerSync  # noqa: E402

from sleuth.algorithms.grpo import group_advantages  # noqa: E402
from sleuth.integrations.verl import advantage  # noqa: E402
from support.verl_inside import EVIOMNI, Servers, config_of  # noqa: E402


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    paths = os.pathsep.join(filter(None, sys.path))
    env = {"VERL_USE_EXTERNAL_MODULES": advantage.__name__, "PYTHONPATH": paths}
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": env}, log_to_driver=False)
    yield
    tq.close()
    ray.shutdown()


@pytest.mark.slow
def test_a_step_of_the_trainer_reaches_advantages(cluster: None, export: Callable[..., Path]):
    folder = export("eviomni/paper", "--set", "retriever=given", "--set", "algorithm.group_size=2")
    config = config_of(
        folder,
        "actor_rollout_ref.rollout.agent.num_workers=1",
        "data.dataloader_num_workers=0",
        "transfer_queue.enable=true",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        # log π_old is that of the servers: without GPUs there is no actor to compute it.
        "algorithm.rollout_correction.bypass_mode=true",
    )
    tq.init(config.transfer_queue)
    trainer: Any = PPOTrainerSync(config)
    trainer.global_steps = 1
    trainer._init_tokenizer()  # `init` would start model workers too
    trainer._init_dataloader()
    servers = Servers(EVIOMNI | {"Peru": [("no tags", EVIOMNI["France"][0])]})
    trainer.agent_loop_manager = AgentLoopManagerTQ.create(config=config, llm_client=servers)
    trainer._add_batch_to_generate()
    batch, _ = trainer.replay_buffer.sample(1, "train", 4)
    batch = trainer._compute_old_log_prob(batch, {})
    batch = trainer._compute_advantage(batch, {})

    fields = ["advantages", "rm_scores", "response_mask", "uid"]
    data = tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=fields)
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row, group in enumerate(list(data["uid"])):
        mask = data["response_mask"][row].bool()
        (advantage_,) = set(data["advantages"][row][mask].tolist())
        assert not data["advantages"][row][~mask].any()
        groups[group].append((data["rm_scores"][row].sum().item(), advantage_))
    assert len(groups) == 4
    for pairs in groups.values():
        rewards, found = zip(*pairs, strict=True)
        assert list(found) == pytest.approx(group_advantages(rewards, "std_floor", 0.1), abs=1e-5)
    assert sum(abs(found) > 0 for pairs in groups.values() for _, found in pairs) == 2
    steps = [tag["max_global_steps"] for tag in batch.tags]
    assert steps == [5] * 8
