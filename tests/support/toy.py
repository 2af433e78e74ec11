"""A run small enough for tests: a random two-layer Llama learns to answer with one letter.

As a script it trains in FOLDER: `toy.py FOLDER STEPS`, or `toy.py FOLDER STEPS POINT=COUNT …`, which
first trains in FOLDER/whole and then, for each point, in FOLDER/0, FOLDER/1, …: there it is killed
with SIGKILL at the COUNT-th call of POINT ("module:name") and started again.
"""

import importlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from sleuth.algorithms.grpo import GRPO
from sleuth.engines.base import Engine
from sleuth.engines.transformers import TransformersEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Decision
from sleuth.episodes.world import World
from sleuth.retrievers.base import Retriever
from sleuth.rewards.base import Reward
from sleuth.scale import Scale
from sleuth.training.loop import Parts, train
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.runs import phase
from sleuth.training.runs.log import RunLog, SilentLog
from sleuth.training.runs.phase import TrainResult
from sleuth.types import Hit, Question, Score, Trajectory

LETTERS = "abcdefghijklmnop"

QUESTIONS = [
    Question(id=f"q{i}", text=LETTERS[i % 5 : i % 5 + 3] + LETTERS[i % 7], answers=("a",)) for i in range(12)
]

PLAN = Scale(
    model="toy",
    train_data="",
    eval_data="jsonl:dev.jsonl",
    max_steps=1,
    max_new_tokens=2,
    max_context=32,
    steps=6,
    batch=3,
    rollout_batch=8,
    micro_batch_tokens=64,
    lr=3e-3,
    lr_schedule="cosine",
    lr_warmup=0.2,
    save_every=2,
    seed=7,
)


@dataclass(frozen=True)
class Letters(AgentProtocol):
    """One turn; whatever is written is the answer."""

    tags = ()
    stops = ()

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        return (("user", question.text),)

    def read(self, text: str) -> Decision:
        return Decision("answer", text) if text else Decision("invalid", "nothing written")

    def show(self, hits: Sequence[Hit]) -> str:
        return ""


class Nothing(Retriever):
    """Finds nothing."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[] for _ in queries]


@dataclass(frozen=True)
class FirstLetter(Reward):
    """1 if the answer begins with `letter`, or whatever `value` makes of a trajectory."""

    letter: str = "a"
    value: Callable[[Trajectory], float] | None = None

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        totals = [
            self.value(t) if self.value else float((t.answer or "").startswith(self.letter))
            for t in trajectories
        ]
        return [Score(total, {"letter": total}) for total in totals]


def lateness(trajectory: Trajectory) -> float:
    """Mean place of the answer's letters in the alphabet: different for nearly every sample."""
    places = [LETTERS.index(letter) for letter in trajectory.answer or "" if letter in LETTERS]
    return sum(places) / max(1, len(places))


def tokenizer(
    pieces: Sequence[str] = (*LETTERS, "\n", "<unk>", "<eos>"), unknown: str = "<unk>"
) -> PreTrainedTokenizerFast:
    """One token per character; the last piece ends a text."""
    raw = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token=unknown))
    raw.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    raw.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=pieces[-1], unk_token=unknown)


def model(seed: int = 0, **changes: Any) -> LlamaForCausalLM:
    """A random Llama of two layers and 32 dimensions, embeddings tied as in SmolLM2."""
    sizes = {"vocab_size": 19, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 64}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    tokens = {"tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": 18}
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(**(sizes | layers | tokens | changes)))


def parts(
    algorithm: Any = None, reward: Reward | None = None, questions: Sequence[Question] = QUESTIONS
) -> Parts:
    """The toy's parts without an engine; by default GRPO with a KL term, two updates per batch and a dense reward."""
    algorithm = algorithm or GRPO(group_size=4, beta=0.01, num_updates=2)
    world = World(Letters(), None, Nothing(), Limits.of(PLAN))  # type: ignore[arg-type]
    return Parts(questions, world, reward or FirstLetter(value=lateness), algorithm)


def new_learner(seed: int = 0, precision: str = "float32") -> tuple[Policy, TransformersEngine]:
    """A policy and the engine that samples from the same weights in the same arithmetic."""
    module, hf = model(seed), tokenizer()
    policy = Policy(module, hf, precision=precision)
    return policy, TransformersEngine(module, hf, autocast=policy.autocast_dtype)


def quiet() -> Console:
    """A console that keeps its lines; see `shown`."""
    return Console(file=io.StringIO(), width=200)


def shown(console: Console) -> str:
    """Text printed so far to a quiet console."""
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def timeless(folder: Path) -> list[dict[str, Any]]:
    """The rows without the times, which differ between equal runs."""
    return [{k: v for k, v in row.items() if not k.startswith("time/")} for row in rows(folder)]


def weights(policy: Policy) -> torch.Tensor:
    """A copy of all trained weights, as one row."""
    return torch.cat([parameter.detach().flatten() for parameter in policy.trainable_parameters()])


def run(
    folder: Path,
    *,
    setup: Parts | None = None,
    learner: tuple[Policy, TransformersEngine] | None = None,
    console: Console | None = None,
    **options: Any,
) -> TrainResult:
    """One call of `train` in FOLDER, by default with a fresh model; fields of Scale change the plan."""
    plan = {name: options.pop(name) for name in list(options) if name in Scale.__dataclass_fields__}
    policy, engine = learner or new_learner()
    scale = replace(PLAN, **plan)
    chosen = setup or parts()
    world = replace(chosen.world, engine=engine, limits=Limits.of(scale))
    with RunLog(folder, console=console or quiet()) if ranks.is_first() else SilentLog(folder) as log:
        return train(policy, replace(chosen, world=world), scale, log, **options)


def kill_at(point: str, count: int) -> None:
    """Have the process killed at the `count`-th call of `point`."""
    module, _, path = point.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), 0

    def deadly(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(owner, name, deadly)


def in_child(work: Callable[[], object]) -> int:
    """Exit code of a forked process that does `work`; negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """See the module's docstring. Prints one "killed resumed" pair of exit codes per point."""
    torch.set_num_threads(1)
    # A toy's step is as short as its checkpoint; every scheduled one must be made to be tested.
    phase.SAVE_SHARE = 1.0
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) == 3:
        run(folder, steps=steps, console=Console(stderr=True))
        return
    in_child(lambda: run(folder / "whole", steps=steps))
    for i, point in enumerate(sys.argv[3:]):
        name, _, count = point.partition("=")

        def dies(name: str = name, count: str = count, i: int = i) -> None:
            kill_at(name, int(count))
            run(folder / str(i), steps=steps)

        killed = in_child(dies)
        print(killed, in_child(lambda i=i: run(folder / str(i), steps=steps)))


if __name__ == "__main__":
    main()
