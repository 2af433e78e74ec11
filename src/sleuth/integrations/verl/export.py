"""A recipe as a folder that verl 0.9 trains from: questions, settings, agent loop and start command.

    DIR/run.sh                         starts verl
    DIR/recipe.json                    the recipe, which the agent loop reads; so DIR is a run folder
    DIR/agent_loop.yaml                registers SleuthAgentLoop
    DIR/train.parquet, val.parquet     the questions

Paths in it are absolute: DIR must be at one path on every node.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sleuth.errors import ConfigError
from sleuth.experiment import Experiment
from sleuth.integrations.verl.settings import (
    AGENT,
    PLUGIN,
    Cluster,
    Settings,
    as_override,
    obstacle,
    trainer_settings,
)
from sleuth.recipe import Recipe
from sleuth.registry import needed
from sleuth.retrievers.base import Around
from sleuth.retrievers.servers.server import check_url
from sleuth.types import Question

AGENT_LOOP = """- name: {name}
  _target_: sleuth.integrations.verl.agent_loop.SleuthAgentLoop
  folder: {folder}
"""
START = """#!/bin/sh
# {name} by verl 0.9. Further arguments are verl's settings, such as trainer.total_training_steps=1.
export VERL_USE_EXTERNAL_MODULES={plugin}
exec python3 -m verl.trainer.main_ppo \\
  {settings} \\
  "$@"
"""


def write_export(experiment: Experiment, cluster: Cluster) -> list[Question]:
    """Write the folder of `experiment` for its recipe; returns the training questions.

    Raises ConfigError, before anything is written, for a recipe that verl cannot train or a folder in use.
    """
    from sleuth.training.questions.dev import divide
    from sleuth.training.selection import check_settings

    folder = experiment.folder = experiment.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty")
    if reason := obstacle(experiment.recipe, cluster):
        raise ConfigError(f"{experiment.recipe.name} cannot be exported to verl: {reason}")
    _place_retriever(experiment)
    recipe, scale = experiment.recipe, experiment.recipe.scale
    check_settings(recipe.reward, recipe.algorithm, scale)
    dev, questions = divide(experiment.train_questions, scale)
    if len(questions) < scale.batch:
        raise ConfigError(f"{len(questions)} training questions are less than one batch of {scale.batch}")
    needed("pyarrow", "verl")
    settings = trainer_settings(recipe, cluster, folder, len(questions))
    experiment.save_recipe()
    write_questions(folder / "train.parquet", questions)
    write_questions(folder / "val.parquet", dev or experiment.eval_questions)
    agent = AGENT_LOOP.format(name=AGENT, folder=msgspec.json.encode(str(folder)).decode())
    (folder / "agent_loop.yaml").write_text(agent, encoding="utf-8")
    start = folder / "run.sh"
    start.write_text(_start_command(recipe, settings), encoding="utf-8")
    start.chmod(0o755)
    return questions


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Questions as verl's dataset reads them; `extra_info.question` is the whole question as JSON."""
    arrow, parquet = needed("pyarrow", "verl"), needed("pyarrow.parquet", "verl")
    text = arrow.string()
    columns = {
        "data_source": text,
        "agent_name": text,
        "prompt": arrow.list_(arrow.struct({"role": text, "content": text})),
        "reward_model": arrow.struct({"style": text, "ground_truth": arrow.list_(text)}),
        "extra_info": arrow.struct({"index": arrow.int64(), "question": text}),
    }
    rows = [
        {
            "data_source": question.dataset or "questions",
            "agent_name": AGENT,
            "prompt": [{"role": "user", "content": question.text}],
            "reward_model": {"style": "rule", "ground_truth": list(question.answers)},
            "extra_info": {"index": index, "question": msgspec.json.encode(question).decode()},
        }
        for index, question in enumerate(questions)
    ]
    parquet.write_table(arrow.Table.from_pylist(rows, schema=arrow.schema(columns)), path)


def _place_retriever(experiment: Experiment) -> None:
    """Replace an index on disk by the server that `experiment.index` names, in the recipe and its saved settings."""
    recipe, address = experiment.recipe, experiment.index
    if not recipe.retriever.unplaced:
        return
    if isinstance(recipe.retriever, Around) or not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"{recipe.name} searches an index: pass --index http://HOST:PORT of a 'sleuth serve-retriever' "
            "that every node can reach"
        )
    check_url(address)
    remote = ("retriever=remote", f"retriever.url={address}")
    experiment.recipe = recipe.with_settings(remote)
    experiment.settings = (*experiment.settings, *remote)


def _start_command(recipe: Recipe, settings: Settings) -> str:
    words = [shlex.quote(as_override(key, value)) for key, value in settings.items()]
    return START.format(name=recipe.name, plugin=PLUGIN, settings=" \\\n  ".join(words))
