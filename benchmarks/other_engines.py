"""Rollout engines that Sleuth does not use, on the tokens that it would give them: OpenVINO GenAI.

`--write FILE` plays the three-turn episodes of rollouts.py with our decoder, greedily and without stop strings, and
writes the contexts of every turn, our tokens and our time. `--engine NAME --read FILE` gives another engine the
same contexts, turn by turn, in an environment of its own. It needs no Sleuth:

    python benchmarks/other_engines.py --write contexts.json
    optimum-cli export openvino --model MODEL --task text-generation-with-past --weight-format fp32 OV
    python benchmarks/other_engines.py --engine openvino --weights OV --read contexts.json

optimum needs transformers 4, which reads the rope base from the field rope_theta of config.json: write it there.
Figures are tokens per CPU-second of one thread. A refresh is the time to load weights from a file in the engine's own
format: a lower bound, since it takes no weights in memory, and the file must be written first.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Write = Callable[[Sequence[list[int]], int], list[list[int]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path)
    parser.add_argument("--read", type=Path)
    parser.add_argument("--engine", choices=OPENERS)
    parser.add_argument("--weights", help="folder or file in the engine's format")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16"])
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=60, help="of each turn")
    options = parser.parse_args()
    if options.write:
        options.write.write_text(json.dumps(played(options)), encoding="utf-8")
        return
    given = json.loads(options.read.read_text(encoding="utf-8"))
    started = time.perf_counter()
    write = OPENERS[options.engine](options.weights, given)
    loaded = time.perf_counter() - started
    write([turn[0][:64] for turn in given["turns"]], 2)
    cpu, equal = 0.0, 0
    for contexts, wanted in zip(given["turns"], given["written"], strict=True):
        before = time.process_time()
        found = write(contexts, given["tokens"])
        cpu += time.process_time() - before
        equal += sum(one == other for one, other in zip(found, wanted, strict=True))
    count = given["tokens"] * sum(map(len, given["turns"]))
    rate = count / cpu
    figures = {
        "engine": options.engine,
        "weights": Path(options.weights).name,
        "dtype": given["dtype"],
        "tokens_per_cpu_s": round(rate, 1),
        "ours_tokens_per_cpu_s": round(count / given["cpu_s"], 1),
        "ratio_to_ours": round(rate * given["cpu_s"] / count, 2),
        "equal_turns": f"{equal} of {sum(map(len, given['turns']))}",
        "load_s": round(loaded, 2),
    }
    print(json.dumps(figures))


def played(options: argparse.Namespace) -> dict[str, Any]:
    """Contexts and tokens of each turn by our decoder, and its CPU seconds."""
    import torch

    from rollouts import TURNS, prompts, world
    from sleuth.engines.base import Request, Sampling
    from sleuth.engines.transformers import TransformersEngine
    from sleuth.training.policy import Policy

    torch.set_num_threads(1)
    policy = Policy.load(options.model, device="cpu", precision=options.dtype)
    engine = TransformersEngine(policy.model, policy.tokenizer, options.model, autocast=policy.autocast_dtype)
    engine._eos = frozenset()  # every turn has the same length
    contexts = prompts(engine, options.questions, options.samples)
    engine.generate([Request(contexts[0])], Sampling(2, temperature=0))
    engine.release()
    turns, all_written, cpu = [], [], 0.0
    for turn in range(TURNS):
        turns.append([list(context) for context in contexts])
        before = time.process_time()
        done = engine.generate([Request(c) for c in contexts], Sampling(options.tokens, temperature=0))
        cpu += time.process_time() - before
        all_written.append([list(one.tokens) for one in done])
        for index, one in enumerate(done):
            contexts[index] += [*one.tokens, *world(engine, turn, index)]
    print(f"ours: {cpu:.1f} CPU s", file=sys.stderr)
    return {
        "tokens": options.tokens,
        "turns": turns,
        "written": all_written,
        "cpu_s": cpu,
        "dtype": options.dtype,
    }


def openvino(folder: str, given: dict[str, Any]) -> Write:
    import numpy as np
    import openvino
    import openvino_genai as genai

    plan = genai.SchedulerConfig()
    plan.cache_size, plan.enable_prefix_caching, plan.max_num_seqs = 2, True, 64
    plan.max_num_batched_tokens = 4096
    precision = {"bfloat16": "bf16", "float32": "f32"}[given["dtype"]]
    # Its cache has 8 bits by default, which gives other tokens.
    device = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": precision}
    device |= {"KV_CACHE_PRECISION": precision, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    pipe = genai.ContinuousBatchingPipeline(folder, plan, "CPU", device, {}, {})

    def write(contexts: Sequence[list[int]], tokens: int) -> list[list[int]]:
        settings = genai.GenerationConfig()
        settings.max_new_tokens, settings.ignore_eos, settings.do_sample = tokens, True, False
        ids = [openvino.Tensor(np.array([context], dtype=np.int64)) for context in contexts]
        return [list(r.m_generation_ids[0]) for r in pipe.generate(ids, [settings] * len(ids))]

    return write


OPENERS: dict[str, Callable[[str, dict[str, Any]], Write]] = {"openvino": openvino}

if __name__ == "__main__":
    main()
