"""Rollouts by our decoder and by another engine on the same greedy tokens, and the time of a weight refresh.

Every engine plays the episodes of rollouts.py: Q questions, G samples each, three turns over contexts of
250 to about 800 tokens that share their beginnings. Each engine runs in a process of its own, in the
arithmetic of training: float32 weights under autocast for our decoder, a copy in that dtype for the other.
A refresh is engine.sync(policy) after an update and the next sample: the copy of all weights, and their loading.
vLLM is measured a second time as its users call it: LLM.generate over all episodes, one round of turns after another.

Needs an environment with the other engine (`make test-openvino` or `make test-vllm` makes one; `pip install
llama-cpp-python gguf` builds llama.cpp).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BARE = "bare vllm"
TARGET = 1.5
"""An engine becomes the default on CPU from this ratio on, if a refresh takes at most two seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("openvino", "vllm", "llama.cpp"), default="openvino")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--max-new-tokens", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=2, help="the least time of each engine counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options, *options.run)))
        return
    result = {
        "model": options.model,
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "threads": options.threads,
        "episodes": options.questions * options.samples,
        "max_new_tokens": options.max_new_tokens,
        "dtypes": {dtype: compare(options, dtype) for dtype in options.dtypes},
    }
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(text + "\n", encoding="utf-8")


def compare(options: argparse.Namespace, dtype: str) -> dict[str, Any]:
    """Both engines in one arithmetic, and how many episodes have the same tokens."""
    engines = ("transformers", options.engine)
    found = {engine: child(options, engine, dtype) for engine in engines}
    written = [found[engine].pop("written") for engine in engines]
    equal = sum(one == other for one, other in zip(*written, strict=True))
    if options.engine == "vllm":
        found[BARE] = child(options, BARE, dtype)
        same = sum(one == other for one, other in zip(written[1], found[BARE].pop("written"), strict=True))
        found[BARE] |= {
            "episodes_with_equal_tokens": same,
            "our_share": round(found["vllm"]["tokens_per_s"] / found[BARE]["tokens_per_s"], 2),
        }
    other, ours = (found[engine]["tokens_per_s"] for engine in reversed(engines))
    ratio = round(other / ours, 2)
    return {
        **found,
        "episodes_with_equal_tokens": equal,
        "ratio_to_our_decoder": ratio,
        "reaches_target": ratio >= TARGET and found[options.engine]["refresh_s"] <= 2,
    }


def child(options: argparse.Namespace, engine: str, dtype: str) -> dict[str, Any]:
    threads = {"OMP_NUM_THREADS": str(options.threads), "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, __file__, *sys.argv[1:], "--run", engine, dtype]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | threads, timeout=1800
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(engine, dtype, {name: v for name, v in figures.items() if name != "written"}, file=sys.stderr)
    return figures


def run(options: argparse.Namespace, name: str, dtype: str) -> dict[str, Any]:
    """One engine: rollouts from an empty cache, then refreshes after updates."""
    import torch
    from parts import sampler

    from rollouts import by_sleuth, prompts, warm
    from sleuth.training.policy import Policy

    torch.set_num_threads(options.threads)
    if name == BARE:
        from bare_vllm import BareVLLM

        engine: Any = BareVLLM(options.model, dtype)
        policy, play = None, engine.play
    else:
        policy = Policy.load(options.model, device="cpu", precision=dtype)
        engine = sampler(name, options.model, policy)
        play = by_sleuth(engine)
    episodes = prompts(engine, options.questions, options.samples)
    play(episodes[:2], 4)
    cpu, wall = [], []
    for _ in range(options.repeat):
        engine.release() if name == BARE else warm(engine)
        before, clock = time.process_time(), time.perf_counter()
        written = play(episodes, options.max_new_tokens)
        cpu.append(time.process_time() - before)
        wall.append(time.perf_counter() - clock)
    tokens = sum(map(len, written))
    return {
        "written": written,
        "tokens": tokens,
        "cpu_s": round(min(cpu), 2),
        "wall_s": round(min(wall), 2),
        "tokens_per_s": round(tokens / min(cpu), 1),
        "version": engine.describe().get(name, torch.__version__),
        **({"refresh_s": round(min(refresh(engine, policy) for _ in range(3)), 3)} if policy else {}),
    }


def refresh(engine: Any, policy: Any) -> float:
    """Seconds of a sync, and of one token, after every weight was written."""
    import torch

    from rollouts import ONE, WARM

    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(0.0)
    started = time.perf_counter()
    engine.sync(policy)
    engine.generate([WARM], ONE)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
