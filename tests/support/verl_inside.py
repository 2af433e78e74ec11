"""Parts of verl for tests: its configuration of an exported folder, and its servers played by a script."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from omegaconf import DictConfig
from verl.workers.rollout.replica import TokenOutput

from sleuth.engines.base import Request, Sampling
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.scripted import ScriptedEngine
from support.models import TOKENIZER

SEARCH_R1 = {
    "France": ["<think>x</think><search>France</search>", "<answer>Paris</answer> and so on"],
    "Japan": ["<answer>Kyoto</answer>"],
    "Peru": ["<search>Peru</search>", "<search>Lima</search>", "<answer>Lima</answer>"],
    "Chile": ["<search>Chile</search>", "<answer>Santiago</answer>"],
}
EVIOMNI = {
    "France": ["<reason>Doc 1 is useful.</reason><extract>Paris</extract><answer>Paris</answer>"],
    "Japan": ["<reason>Doc 2 is useful, I think.</reason><extract>Tokyo</extract><answer>Kyoto</answer>"],
    "Peru": ["no tags"],
    "Chile": ["<reason>a</reason><extract></extract><answer>Santiago</answer>"],
}
PROBES = {"France": "Paris</answer>"}
"""Country → reply to EviOmni's probes, whose contexts end with <answer>."""


class Script:
    """Replies by the country that the context asks for and the searches in it so far; those of a tuple by turns."""

    def __init__(self, replies: Mapping[str, Sequence[str | tuple[str, ...]]]) -> None:
        self.replies = replies
        self.calls = 0

    def __call__(self, request: Request, _: int) -> str:
        text = HFTokenizer(TOKENIZER).decode(request.tokens)
        country = next(name for name in self.replies if f"capital of {name}" in text)
        if text.endswith("<answer>"):
            return PROBES.get(country, "Lyon</answer>")
        reply = self.replies[country][text.split("assistant", 1)[-1].count("</information>")]
        self.calls += isinstance(reply, tuple)
        return reply if isinstance(reply, str) else reply[self.calls % len(reply)]


class Servers:
    """The client that verl passes to agent loops; the log-probability of token t is −t / 1000."""

    def __init__(self, replies: Mapping[str, Sequence[str | tuple[str, ...]]]) -> None:
        self.engine = ScriptedEngine(Script(replies), HFTokenizer(TOKENIZER))
        self.temperatures: list[float] = []

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]
    ) -> Any:
        given = sampling_params
        self.temperatures.append(given["temperature"])
        sampling = Sampling(given["max_tokens"], given["temperature"], given["top_p"], tuple(given["stop"]))
        done = await self.engine.sample(Request(tuple(prompt_ids)), sampling)
        return TokenOutput(
            token_ids=done.tokens,
            log_probs=[-token / 1000 for token in done.tokens],
            stop_reason="completed",
            extra_fields={"global_steps": 5},
        )


def config_of(folder: Path, *overrides: str) -> DictConfig:
    """verl's configuration after the settings of the start command and further ones; Hydra refuses unknown keys."""
    words = shlex.split((folder / "run.sh").read_text().replace("\\\n", " "), comments=True)
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", [*words[words.index("verl.trainer.main_ppo") + 1 : -1], *overrides])
