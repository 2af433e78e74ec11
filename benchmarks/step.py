"""Cost of a training step, ours and TRL's in one run: same model, same greedy tokens, same gradients.

Each part runs in a process of its own. Where two ways are compared they take turns, so that other load falls on
both, and the least CPU time of each counts. The episodes are those of rollouts.py: three turns of one sentence,
and documents after each.

- step: whole GRPO steps. Ours is the training loop; TRL's is GRPOTrainer with a `rollout_func` that calls
  transformers' generate turn by turn, one row in a backward pass. Rollouts and update are also given alone.
- update: loss and backward pass of a group of random rollouts, and the difference of the gradients.
- methods: EviOmni's probes against generate on the same contexts; EVO-RAG's siblings against whole episodes.
- evaluation: questions/s of `evaluate`, and of generate without records.
- growth: seconds an episode as group, turns and documents grow, one at a time.
- profile: what our rollouts and updates, and TRL's update, spend their time on.
"""

import argparse
import gc
import json
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from parts import Stopwatch, commit, machine, ratios, run_part, sampler, write

PARTS = ("step", "update", "methods", "evaluation", "growth", "profile")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2-135m-instruct", help="name or folder")
    parser.add_argument("--engine", choices=("transformers", "openvino", "vllm"), default="transformers")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--questions", type=int, default=2)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--new", type=int, default=40, help="most tokens of a turn")
    parser.add_argument("--prompt", type=int, default=600, help="prompt tokens of the update")
    parser.add_argument("--response", type=int, default=60, help="response tokens of the update")
    parser.add_argument("--group", type=int, default=7, help="rollouts of the update")
    parser.add_argument("--micro-batch-tokens", type=int, default=1024, help="of our updates")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--run", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options)))
        return
    figures = {name: value for name, value in vars(options).items() if name not in ("json", "run", "parts")}
    figures |= {
        "machine": machine(),
        "commit": commit(),
        "versions": {name: version(name) for name in ("torch", "transformers", "trl")},
    }
    environment = {"OMP_NUM_THREADS": str(options.threads), "OMP_WAIT_POLICY": "PASSIVE"}
    for name in options.parts:
        figures[name] = run_part([__file__, *sys.argv[1:], "--run", name], 3600, environment)
        print(f"{name}: {figures[name]}", file=sys.stderr)
    write(figures, options.json)
    for name, ratio in table(figures).items():
        print(f"{name:55} {ratio:6.2f}", file=sys.stderr)


def table(figures: dict[str, Any]) -> dict[str, float]:
    """Ratios to the yardstick that each line names, of the parts that ended."""
    step, alone = (figures.get(part, {}).get("ratios", {}) for part in ("step", "update"))
    methods, evaluation = figures.get("methods", {}), figures.get("evaluation", {})
    rows = {
        "rollouts / TRL, target 3": step.get("rollouts"),
        "update in step / TRL": step.get("update in step"),
        "step / TRL, target 3": step.get("step"),
        "update of long prompts / TRL, target 2.5": alone.get("update"),
        "EviOmni's probes / generate": methods.get("eviomni_probes", {}).get("ratio_to_generate"),
        "EVO-RAG's siblings / whole episodes": methods.get("evo_rag_siblings", {}).get("ratio_to_whole"),
        "the same / own documents": methods.get("evo_rag_siblings", {}).get("ratio_to_independent"),
        "evaluation / generate": evaluation.get("ratio_to_generate"),
    }
    return {name: ratio for name, ratio in rows.items() if ratio}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Figures of one part, in this process."""
    import costs

    policy, engine = loaded(options)
    part = {"step": step, "update": update}.get(options.run) or getattr(costs, options.run)
    figures: dict[str, Any] = part(options, policy, engine)
    return figures | {"peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)}


def loaded(options: argparse.Namespace) -> tuple[Any, Any]:
    """A policy and the engine that samples from it, both warm."""
    import torch

    from sleuth.engines.base import Request, Sampling
    from sleuth.training.policy import Policy

    torch.set_num_threads(options.threads)
    policy = Policy.load(options.model, device="cpu", precision=options.precision)
    engine = sampler(options.engine, options.model, policy)
    engine.generate([Request(list(range(5, 25)))], Sampling(4, temperature=0.0))
    return policy, engine


def step(options: argparse.Namespace, policy: Any, engine: Any) -> dict[str, Any]:
    """Steps of the training loop, and one of TRL's before each."""
    from retelling import asked, trl_rollout, world_of
    from trainers import distinct, sleuth_steps, trl_copy
    from transformers import TrainerCallback

    from sleuth.algorithms.grpo import GRPO
    from sleuth.rewards.base import Reward
    from sleuth.scale import Scale
    from sleuth.training.loop import Parts
    from sleuth.types import Score

    ours, theirs = Stopwatch(), Stopwatch()
    written: dict[str, list[list[int]]] = {}

    @dataclass(frozen=True)
    class Distinct(Reward):
        def score(self, trajectories: Sequence[Any], engine: Any = None) -> list[Score]:
            ours.stop("rollouts")
            completions = [t.tokens[len(t.segments[0].tokens) :] for t in trajectories]
            written["ours"] = sorted(completions)
            return [Score(distinct(completion), {}) for completion in completions]

    class Clock(TrainerCallback):  # type: ignore[misc]
        on_step_begin = staticmethod(theirs.start)

        def on_step_end(self, *_: Any, **__: Any) -> None:
            theirs.stop("step")

    def played(completions: list[list[int]]) -> None:
        theirs.stop("rollouts")
        written["trl"] = sorted(completions)

    world, questions = world_of(engine, options.new), asked(options.questions)
    rollout = trl_rollout(world.protocol, options.new, played)
    prompts = [question.text for question in questions]

    def their_step() -> None:
        """One step of a new trainer, whose moments are freed after it."""
        with TemporaryDirectory() as folder:
            trainer = trl_copy(
                policy, folder, prompts, options.samples, rollout_func=rollout, callbacks=[Clock()]
            )
            trainer.train()
        del trainer
        gc.collect()

    def between(number: int) -> dict[str, float]:
        ours.stop("step")
        if number < options.repeat:
            their_step()
        ours.start()
        return {}

    sizes = {"batch": options.questions, "max_steps": world.limits.max_steps, "max_context": 4096}
    sizes |= {"micro_batch_tokens": options.micro_batch_tokens, "max_new_tokens": options.new}
    plan = {"steps": options.repeat, "eval_every": 1, "save_every": 0, "guards": False, "lr": 0.0}
    parts = Parts(questions, world, Distinct(), GRPO(group_size=options.samples, beta=0.0))
    their_step()
    ours.start()
    sleuth_steps(policy, parts, Scale(options.model, "", "jsonl:dev", **sizes, **plan), between)
    for watch in (ours, theirs):
        both = zip(watch.seconds["step"], watch.seconds["rollouts"], strict=True)
        watch.seconds["update in step"] = [whole - rollouts for whole, rollouts in both]
    lengths = {way: round(fmean(map(len, episodes))) for way, episodes in written.items()}
    return {
        "episodes": len(written["ours"]),
        "tokens_after_the_prompt": lengths,
        "equal_tokens": written["ours"] == written["trl"],
        "cpu_s": {"ours": ours.best(), "trl": theirs.best()},
        "ratios": ratios(ours.best(), theirs.best()),
    }


def update(options: argparse.Namespace, policy: Any, engine: Any) -> dict[str, Any]:
    """The same random rollouts, ours with a shared prompt and TRL's row by row."""
    from trainers import our_update, random_group, their_update, trl_copy

    ours, theirs = Stopwatch(), Stopwatch()
    signals = random_group(policy, options.prompt, options.response, options.group)
    with TemporaryDirectory() as folder:
        trainer = trl_copy(policy, folder)
        trainer.model.eval()  # no accumulation over steps
        for _ in range(options.repeat):
            policy.model.zero_grad(set_to_none=True)
            trainer.model.zero_grad(set_to_none=True)
            ours.time("update", partial(our_update, policy, signals, options.micro_batch_tokens))
            theirs.time("update", partial(their_update, trainer, signals))
    pairs = list(zip(policy.model.parameters(), trainer.model.parameters(), strict=True))
    difference = sum(float((a.grad - b.grad).double().square().sum()) for a, b in pairs)
    whole = sum(float(b.grad.double().square().sum()) for _, b in pairs)
    return {
        "cpu_s": {"ours": ours.best(), "trl": theirs.best()},
        "ratios": ratios(ours.best(), theirs.best()),
        "gradient_relative_difference": (difference / whole) ** 0.5,
    }


if __name__ == "__main__":
    main()
