"""Multi-turn rollouts: our engine against the way Search-R1 generates, on the same model and greedy tokens.

Every way plays the same episodes: Q questions, G samples each, three turns. After turns one and two the
environment adds about 200 scripted tokens, so that an untrained model also plays several turns. They differ
between samples, as passages would. A turn ends with the token that completes a stop string.

search-r1   transformers' generate on all episodes as one batch; every turn starts from the bare context
            again, no stop strings: each turn runs to max_new_tokens (or end of text) and is cut after.
            Search-R1's own setting is 500 tokens a turn; the default here, 256, is kinder to it.
generate    the same, but with stop strings: what a careful user of generate would do.
sleuth      our engine (--engine), as the episode loop uses it: keys and values kept across turns,
            shared prefixes computed once, and no episode waits for another's longer turn.

Prints episodes per CPU-second (time.process_time; one thread by default, because a thread that
waits for another is counted too) and the ratios; fails if any way wrote
other tokens. Model loading and a warm-up of one episode are not counted.
"""

import argparse
import asyncio
import platform
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from parts import commit, machine, write

from sleuth.engines import open_engine
from sleuth.engines.base import Message, Request, Sampling
from sleuth.engines.models import load_model
from sleuth.engines.transformers import TransformersEngine

STOPS = (".", "\n")
WARM, ONE = Request(list(range(5, 25))), Sampling(1, temperature=0)
"""A context that shares nothing with the episodes."""
TURNS = 3
INSTRUCTIONS = (
    "You are a town historian with a search engine. You think aloud in long, detailed paragraphs of full "
    "sentences and never give lists. First say at length what you know about the question and which facts are "
    "still needed. The search engine then shows you documents. Retell all of them in flowing prose, in your own "
    "words, with every name and number they hold, and say how they bear on the question. "
)
TOWNS = [
    "Aldon",
    "Brevik",
    "Corra",
    "Dunmere",
    "Estola",
    "Farrow",
    "Galway Ford",
    "Hestia",
    "Ilmen",
    "Jorvale",
]
FACTS = [
    "population",
    "mayor",
    "founding year",
    "main river",
    "largest factory",
    "oldest bridge",
    "patron saint",
]

CUE = "Thinking aloud about this question, the first fact that"
"""Begins the first turn: without it the model answers at once and ends the text."""

Episode = list[int]
"""The tokens of one context, growing turn by turn."""
Write = Callable[[Sequence[Episode], int], list[list[int]]]
"""(contexts, max new tokens) → the tokens of one turn for each, up to the one that completes a stop string."""
Play = Callable[[Sequence[Episode], int], list[list[int]]]
"""(prompts, max new tokens) → what was written in each episode, turn after turn."""


def documents(rng: random.Random, count: int) -> str:
    """Invented documents, about 45 tokens each."""
    return "".join(
        f"Document {i + 1} (Title: {rng.choice(TOWNS)}) The {rng.choice(FACTS)} of {rng.choice(TOWNS)} is number "
        f"{rng.randrange(1000)} in the register of {rng.randrange(1500, 2000)}; the {rng.choice(FACTS)} is shared "
        f"with {rng.choice(TOWNS)} and {rng.choice(TOWNS)}\n"
        for i in range(count)
    )


def question_text(number: int) -> str:
    """Instructions, two documents and a question, about 220 tokens."""
    rng = random.Random(number)
    return f"{INSTRUCTIONS}\n{documents(rng, 2)}\nQuestion: What is the {rng.choice(FACTS)} of {rng.choice(TOWNS)}?"


def news(rng: random.Random, count: int = 4) -> str:
    """The environment's text after a turn: documents and the beginning of the next turn."""
    return f"\n\n{documents(rng, count)}\nLong retelling of these documents:\nThe first"


def prompts(engine: TransformersEngine, questions: int, samples: int) -> list[Episode]:
    """Contexts of about 250 tokens; the samples of a question are equal."""
    found: list[Episode] = []
    for number in range(questions):
        chat = engine.tokenizer.chat([Message("user", question_text(number))])
        tokens = chat + engine.tokenizer.encode(CUE)
        found += [list(tokens) for _ in range(samples)]
    return found


def world(engine: TransformersEngine, turn: int, episode: int) -> list[int]:
    """Tokens of the environment after a turn."""
    return engine.tokenizer.encode(news(random.Random(1000 * turn + episode)))


def in_rounds(engine: TransformersEngine, write: Write) -> Play:
    """All episodes write a turn, then all read, and so on."""

    def play(episodes: Sequence[Episode], max_new: int) -> list[list[int]]:
        contexts = [list(episode) for episode in episodes]
        written: list[list[int]] = [[] for _ in contexts]
        for turn in range(TURNS):
            for index, tokens in enumerate(write(contexts, max_new)):
                written[index] += tokens
                contexts[index] += [*tokens, *world(engine, turn, index)]
        return written

    return play


def by_generate(engine: TransformersEngine, stop_strings: bool) -> Play:
    """transformers' generate over the whole batch, one round of turns after another."""

    def write(contexts: Sequence[Episode], max_new: int) -> list[list[int]]:
        return generate(engine.model, engine.tokenizer.hf, contexts, max_new, stop_early=stop_strings)

    return in_rounds(engine, write)


def generate(
    model: Any,
    hf: Any,
    contexts: Sequence[Episode],
    max_new: int,
    stops: tuple[str, ...] = STOPS,
    *,
    stop_early: bool = True,
) -> list[list[int]]:
    """Greedy turns by transformers' generate, padded on the left, each up to the token that completes a stop string."""
    width = max(map(len, contexts))
    ids = torch.tensor([[hf.pad_token_id] * (width - len(c)) + list(c) for c in contexts])
    mask = torch.tensor([[0] * (width - len(c)) + [1] * len(c) for c in contexts])
    options = {"stop_strings": list(stops), "tokenizer": hf} if stop_early else {}
    with torch.no_grad():
        out = model.generate(ids, attention_mask=mask, max_new_tokens=max_new, do_sample=False, **options)
    return [cut(row, hf, stops) for row in out[:, width:].tolist()]


def cut(tokens: list[int], hf: Any, stops: tuple[str, ...]) -> list[int]:
    """The turn up to the token that completes a stop string or ends the text."""
    for index, token in enumerate(tokens):
        text = hf.decode(tokens[: index + 1], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        if token == hf.eos_token_id or any(stop in text for stop in stops):
            return tokens[: index + 1]
    return tokens


def by_sleuth(engine: TransformersEngine) -> Play:
    """Our engine, from an empty cache, one coroutine an episode."""

    def play(episodes: Sequence[Episode], max_new: int) -> list[list[int]]:
        sampling = Sampling(max_new, temperature=0, stop=STOPS)

        async def one(index: int) -> list[int]:
            context, written = list(episodes[index]), list[int]()
            for turn in range(TURNS):
                done = await engine.sample(Request(context), sampling)
                written += done.tokens
                context += [*done.tokens, *world(engine, turn, index)]
            return written

        async def all_of_them() -> list[list[int]]:
            return await asyncio.gather(*map(one, range(len(episodes))))

        return asyncio.run(all_of_them())

    return play


def warm(engine: Any) -> None:
    """Empty the cache, and load what was freed with it."""
    engine.release()
    engine.generate([WARM], ONE)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run every way `repeat` times, in turn, and compare."""
    model, hf = load_model(arguments.model, dtype=arguments.dtype, device="cpu")
    engine = TransformersEngine(model, hf, arguments.model)
    sampler: Any = engine
    if arguments.engine != "transformers":
        sampler = open_engine(f"{arguments.engine}:{arguments.model}", dtype=arguments.dtype)
    episodes = prompts(engine, arguments.questions, arguments.samples)
    ways = {
        "search-r1": by_generate(engine, stop_strings=False),
        "generate": by_generate(engine, stop_strings=True),
        "sleuth": by_sleuth(sampler),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    wall: dict[str, list[float]] = {name: [] for name in ways}
    written: dict[str, list[list[int]]] = {}
    for play in ways.values():
        play([episodes[0]], 4)
    for _ in range(arguments.repeat):
        for name, play in ways.items():
            engine.release()
            warm(sampler)
            cpu, clock = time.process_time(), time.perf_counter()
            written[name] = play(episodes, arguments.max_new_tokens)
            seconds[name].append(time.process_time() - cpu)
            wall[name].append(time.perf_counter() - clock)
    different = sum(
        any(written[name][i] != written["sleuth"][i] for name in ways) for i in range(len(episodes))
    )
    best = {name: min(values) for name, values in seconds.items()}
    lengths = [len(tokens) / TURNS for tokens in written["sleuth"]]
    return {
        "model": arguments.model,
        "questions": arguments.questions,
        "samples": arguments.samples,
        "turns": TURNS,
        "max_new_tokens": arguments.max_new_tokens,
        "prompt_tokens": sum(map(len, episodes)) / len(episodes),
        "world_tokens_per_turn": len(engine.tokenizer.encode(documents(random.Random(0), 4))),
        "written_tokens_per_turn": round(sum(lengths) / len(lengths), 1),
        "episodes_with_different_tokens": different,
        "cpu_seconds": {name: [round(v, 2) for v in values] for name, values in seconds.items()},
        "wall_seconds": {name: [round(v, 2) for v in values] for name, values in wall.items()},
        "episodes_per_cpu_second": {name: round(len(episodes) / value, 4) for name, value in best.items()},
        "ratio_to_search_r1": round(best["search-r1"] / best["sleuth"], 2),
        "ratio_to_generate_with_stop_strings": round(best["generate"] / best["sleuth"], 2),
        "dtype": arguments.dtype,
        "engine": arguments.engine,
        "threads": torch.get_num_threads(),
        "machine": machine(),
        "commit": commit(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Episodes per CPU-second, Sleuth against the Search-R1 way.")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--engine", choices=("transformers", "openvino", "vllm"), default="transformers")
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--max-new-tokens", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=1, help="the least CPU time of each way counts")
    parser.add_argument(
        "--threads", type=int, default=1, help="more are counted even while they wait; 0 = torch's own choice"
    )
    parser.add_argument("--json", type=Path, help="write the result here")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    result = measure(arguments)
    write(result, arguments.json)
    if result["episodes_with_different_tokens"]:
        raise SystemExit(f"{result['episodes_with_different_tokens']} episodes have different tokens")


if __name__ == "__main__":
    main()
