"""A recipe as settings of verl 0.9's trainer, and the reasons why a recipe cannot be one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sleuth.algorithms.grpo import GRPO
from sleuth.checked import Checked, Positive
from sleuth.engines import smollm2
from sleuth.recipe import Recipe

ESTIMATOR = "sleuth_grpo"
"""Name under which advantage.py is registered with verl."""
AGENT = "sleuth"
"""Name of the agent loop."""
PLUGIN = "sleuth.integrations.verl.advantage"
"""Module that verl imports in every process, by VERL_USE_EXTERNAL_MODULES."""
NEVER = 1e9
"""A limit that is never reached: verl has no switch for its second clip, nor for gradient clipping."""
AGGREGATION = {"sequence": "seq-mean-token-mean", "token": "token-mean"}
KL = {"k2": "k2", "k3": "low_var_kl"}

Settings = dict[str, Any]
"""Dotted key → value; "+" before a key adds one that verl's own config lacks."""


@dataclass(frozen=True)
class Cluster(Checked):
    """The machines that verl trains on."""

    nodes: Positive = 1
    gpus: Positive = 8
    """GPUs a node."""
    engine: Literal["vllm", "sglang"] = "vllm"
    """Server of the rollouts."""


def obstacle(recipe: Recipe, cluster: Cluster) -> str:
    """Why verl cannot train this recipe as Sleuth does, and how to change that if possible; "" if it can."""
    scale, algorithm = recipe.scale, recipe.algorithm
    if not scale.steps:
        return "it is not trained (scale.steps=0)"
    if type(algorithm) is not GRPO:
        return f"it trains by {type(algorithm).__name__}; only GRPO on groups of whole episodes is exported"
    if len(recipe.reward.stages()) > 1:
        return "its reward changes in stages, and verl trains with one reward"
    if not recipe.protocol.keeps_context:
        return "its context is cut or renewed within an episode, and verl trains an episode as one sequence"
    episodes, gpus = scale.batch * algorithm.group_size, cluster.nodes * cluster.gpus
    reasons = {
        f"verl has no warm start: run 'sleuth train {recipe.name} --set scale.steps=0 -o RUN' and export with "
        "--set scale.model=RUN/model --set scale.warm_start_examples=0": scale.warm_start_examples > 0,
        "verl counts groups of equal rewards: set algorithm.drop_zero_variance=false": algorithm.drop_zero_variance,
        "verl trains on every rollout: set algorithm.train_on=0": algorithm.train_on > 0,
        "verl weighs both signs alike: set algorithm.negative_weight=1": algorithm.negative_weight < 1,
        "verl trains every layer: set scale.frozen_layers=0": scale.frozen_layers > 0,
        "verl draws all questions alike: set scale.candidates=0 and scale.refill=0": scale.candidates > 0
        or scale.refill > 0,
        "verl has no linear schedule: set scale.lr_schedule to constant or cosine": scale.lr_schedule
        == "linear",
        f"scale.model={scale.model} is known to Sleuth only: set it to a Hugging Face name or a model folder": (
            scale.model == smollm2.NAME
        ),
        f"{episodes} episodes a step (scale.batch × group size) cannot be divided among {gpus} GPUs": (
            episodes % gpus != 0
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def trainer_settings(recipe: Recipe, cluster: Cluster, folder: Path, questions: int) -> Settings:
    """verl's settings for an exported folder with this number of training questions."""
    scale = recipe.scale
    return {
        "data.train_files": str(folder / "train.parquet"),
        "data.val_files": str(folder / "val.parquet"),
        "data.train_batch_size": scale.batch,
        "data.max_prompt_length": scale.max_context - scale.max_new_tokens,
        "data.max_response_length": scale.max_context,
        "data.seed": scale.seed,
        **_model(recipe),
        **_update(recipe),
        **_rollouts(recipe, cluster, folder),
        "critic.enable": False,
        "trainer.nnodes": cluster.nodes,
        "trainer.n_gpus_per_node": cluster.gpus,
        "trainer.total_training_steps": scale.steps,
        "trainer.total_epochs": -(-scale.steps // (questions // scale.batch)),
        "trainer.save_freq": scale.save_every or -1,
        "trainer.test_freq": scale.dev_every if scale.dev_questions else scale.eval_every or -1,
        "trainer.project_name": "sleuth",
        "trainer.experiment_name": recipe.name,
        "trainer.logger": ["console"],
        "trainer.default_local_dir": str(folder / "checkpoints"),
        # Ray starts the processes on other nodes without this one's environment.
        "+ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES": PLUGIN,
    }


def _model(recipe: Recipe) -> Settings:
    scale, place = recipe.scale, "actor_rollout_ref.model"
    local = Path(scale.model).expanduser()
    found: Settings = {
        f"{place}.path": str(local.resolve()) if local.is_dir() else scale.model,
        f"{place}.enable_gradient_checkpointing": scale.gradient_checkpointing,
    }
    if scale.lora_rank:
        found |= {f"{place}.lora_rank": scale.lora_rank, f"{place}.lora_alpha": 2 * scale.lora_rank}
        # verl's servers of an adapter read the base model from disk.
        found["actor_rollout_ref.rollout.load_format"] = "safetensors"
    return found


def _update(recipe: Recipe) -> Settings:
    scale, grpo, place = recipe.scale, recipe.algorithm, "actor_rollout_ref.actor"
    assert isinstance(grpo, GRPO)
    arithmetic = "float32" if scale.precision == "float32" else "bfloat16"
    found: Settings = {
        "optim.lr": scale.lr,
        "optim.lr_scheduler_type": scale.lr_schedule,
        "optim.lr_warmup_steps_ratio": scale.lr_warmup,
        "optim.weight_decay": scale.weight_decay,
        "optim.clip_grad": scale.max_grad_norm or NEVER,
        "fsdp_config.dtype": arithmetic,
        # In questions; verl multiplies it by rollout.n. One optimiser step a pass, as here.
        "ppo_mini_batch_size": scale.batch,
        "ppo_epochs": grpo.num_updates,
        "use_dynamic_bsz": True,
        "ppo_max_token_len_per_gpu": max(scale.micro_batch_tokens, scale.max_context),
        "clip_ratio": grpo.epsilon,
        "clip_ratio_low": grpo.epsilon,
        "clip_ratio_high": grpo.epsilon,
        "clip_ratio_c": NEVER,
        "loss_agg_mode": AGGREGATION[grpo.aggregation],
        "use_kl_loss": grpo.beta > 0,
        "kl_loss_coef": grpo.beta,
        "kl_loss_type": KL[grpo.kl],
    }
    correction = "algorithm.rollout_correction"
    bound = {f"{correction}.rollout_is_threshold": grpo.engine_ratio_max} if grpo.engine_ratio_max else {}
    return {
        **{f"{place}.{key}": value for key, value in found.items()},
        f"{correction}.rollout_is": "token" if grpo.engine_ratio_max else None,
        **bound,
        "actor_rollout_ref.ref.fsdp_config.dtype": arithmetic,
        "algorithm.adv_estimator": ESTIMATOR,
        "+algorithm.sleuth.scale": grpo.scale,
        "+algorithm.sleuth.std_floor": grpo.std_floor,
    }


def _rollouts(recipe: Recipe, cluster: Cluster, folder: Path) -> Settings:
    scale, place = recipe.scale, "actor_rollout_ref.rollout"
    found: Settings = {
        "name": cluster.engine,
        "n": recipe.algorithm.group_size,
        "temperature": scale.temperature,
        "top_p": scale.top_p,
        "max_model_len": scale.max_context,
        "tensor_model_parallel_size": 1,
        # SGLang finds stop strings only with a tokenizer; verl's vLLM server always has one.
        "skip_tokenizer_init": False,
        "agent.agent_loop_config_path": str(folder / "agent_loop.yaml"),
    }
    return {f"{place}.{key}": value for key, value in found.items()}


def as_override(key: str, value: Any) -> str:
    """`key=value` in the grammar of Hydra's command line, where JSON's quotes and escapes are valid."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"
