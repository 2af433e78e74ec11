"""A noisy scripted policy over a small world, and a digest of every episode it plays.

The digests in recorded_episodes.json were written before episodes became coroutines. Those of EviNote-RAG and of
EviOmni's CoT were written again when their prompts changed, that of evinote-rag/ne when the lexical judge's claim did.
That of eviomni/cpu was written again when its length reward went.
They hold tokens, authors, masks, actions, fields, endings and rewards, so any change of what an episode is shows here.
"""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sleuth.encoders.lexical import LexicalEncoder
from sleuth.engines.scripted import ScriptedEngine
from sleuth.judges.lexical import LexicalJudge
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.given import AllGiven
from sleuth.types import Hit, Hop, Passage, Question, Trajectory

PEOPLE = ("Ann Bell", "Otto Lang", "Mia Roth", "Juan Sol", "Kei Mori")
TOWNS = ("Arlen", "Brill", "Cosk", "Dorn", "Elvet")
BOOKS = ("Emma Grey", "North Wind", "Salt Road", "Tin Moon", "Last Ferry")
PASSAGES = [
    *(
        Passage(
            f"b{i}", book, f"{book} is a novel. {book} was written by {person}. <answer>{person}</answer>"
        )
        for i, (book, person) in enumerate(zip(BOOKS, PEOPLE, strict=True))
    ),
    *(
        Passage(
            f"t{i}", person, f"{person} is a writer who was born in {town}. " + "Nothing more is known. " * i
        )
        for i, (person, town) in enumerate(zip(PEOPLE, TOWNS, strict=True))
    ),
]


def questions(count: int) -> list[Question]:
    """Two-hop questions about birthplaces of authors; every fifth has no answer."""
    found = []
    for i in range(count):
        book, person, town = (part[i % 5] for part in (BOOKS, PEOPLE, TOWNS))
        gold = (f"b{i % 5}", f"t{i % 5}")
        hops = (
            Hop(f"{book} written by", gold[0], person, f"the author of {book}"),
            Hop(f"{person} born", gold[1], town, f"where {person} was born"),
        )
        text = f"Where was the author of {book} born? ({i})"
        question = Question(f"q{i}", text, (town,), tuple(PASSAGES), gold, hops=hops, dataset="world")
        found.append(
            replace(question, answers=(), gold_ids=(), hops=(), answerable=False) if i % 5 == 4 else question
        )
    return found


@dataclass(frozen=True)
class Overlap(Retriever):
    """Passages by the number of words they share with the query, ties by id."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [self._find(set(query.lower().split()), k) for query in queries]

    def _find(self, words: set[str], k: int) -> list[Hit]:
        scored = [Hit(p, float(len(words & set(f"{p.title} {p.text}".lower().split())))) for p in PASSAGES]
        return sorted((hit for hit in scored if hit.score), key=lambda hit: (-hit.score, hit.passage.id))[:k]


def offline(recipe: Recipe) -> Recipe:
    """The recipe with judges and encoders that need no model, and room for long byte contexts."""
    reward: Any = recipe.reward
    if getattr(reward, "judge", None) is not None:
        is_llm = hasattr(reward.judge, "ask")
        reward = replace(reward, judge=YesNo() if is_llm and not hasattr(reward, "measure") else reward.judge)
        reward = replace(reward, judge=LexicalJudge()) if not is_llm else reward
        if hasattr(reward, "measure") and is_llm:
            reward = replace(reward, measure="em", judge=None)
    if getattr(reward, "encoder", None) is not None:
        reward = replace(reward, encoder=LexicalEncoder())
    sizes = {"max_new_tokens": 600, "max_context": 40_000, "max_passage_tokens": 900}
    given = isinstance(recipe.retriever, AllGiven)
    sizes["top_k"] = len(PASSAGES) if given else 3
    retriever = recipe.retriever if given else Overlap()
    return recipe.but(reward=reward, retriever=retriever).sized(**sizes)


@dataclass(frozen=True)
class YesNo:
    """A judge of yes or no by the length of the prompt."""

    def ask(self, prompts: Sequence[str]) -> list[bool | None]:
        return [len(prompt) % 2 == 0 for prompt in prompts]


def write(request: Any, turn: int) -> str:
    """The policy's turn: fixed by the request's seed, sensible or broken."""
    rng = random.Random(request.seed)
    person, town, book = rng.choice(PEOPLE), rng.choice(TOWNS), rng.choice(BOOKS)
    note = rng.choice(["evaluate", "refine", "summary", "evidence", "think"])
    query = rng.choice([f"{book} written by", f"{person} born", "", f"{book} <search>{person}"])
    sections = f"<relevance>[1, {rng.randint(1, 9)}]</relevance><analysis>{person} of {book}</analysis>"
    evidence = f"<reason>Doc 1 says {person}</reason><extract>{person} was born in {town}</extract>"
    pieces = [
        f"<think>I need {book}.</think><search>{query}</search>",
        f"<{note}>* {person} wrote it\n- {town}, perhaps</{note}><think>next</think><search>{query}</search>",
        f"<{note}>{person} was born in {town}</{note}><answer>{town}</answer>",
        f"<think>t</think><answer>{town}</answer>",
        "<think>useless</think><backtrack/>",
        "<think>nothing</think><refuse>no evidence</refuse>",
        f"{sections}<answer>{town}</answer>",
        f"{evidence}<answer>{town}</answer>",
        f"Yes.\nFollow up: Who wrote {book}?\nIntermediate answer:",
        f"{person}.\nSo the final answer is: {town}",
        f"<|begin_search_query|>{book}<|end_search_query|>",
        f"Final Information: {person} was born in {town}.",
        f"\\boxed{{{town}}}",
        f"{book} was written by {person}.",
        f"So the answer is: {town}.",
        f"(a) {town}, (b) {person}",
        "Passage 1",
        "True",
        rng.choice(["", "no tags at all", "<answer></answer>", "<answer>Paris"]),
    ]
    prompt = request.messages[0].content
    marks = ("<search>", "<refuse>", "<backtrack/>", "<relevance>", "<extract>", "Follow up", "final answer")
    shown = [mark for mark in (*marks, "boxed") if mark in prompt]
    fitting = [piece for piece in pieces if any(mark in piece for mark in shown)]
    fitting += [pieces[10], pieces[11]] if "boxed" in shown else []
    return rng.choice(fitting if fitting and rng.random() < 0.8 else pieces)


def digest(trajectory: Trajectory) -> str:
    """A hash of everything an episode is."""
    score = trajectory.score
    content = (
        [
            (s.author, s.tokens, s.text, s.stop, s.until, [h.passage.id for h in s.hits])
            for s in trajectory.segments
        ],
        [(a.kind, a.text, a.segment) for a in trajectory.actions],
        [(f.tag, f.text, f.segment, f.start, f.end) for f in trajectory.fields],
        (trajectory.ending, trajectory.sample, trajectory.seed, trajectory.fault, trajectory.malformed),
        score and (repr(score.total), sorted(score.parts.items()), score.invalid),
        score and [(s.action, sorted(s.parts.items()), sorted(s.weights.items())) for s in score.steps],
    )
    return hashlib.blake2b(repr(content).encode(), digest_size=8).hexdigest()


def recorded(name: str, count: int, play: Callable[..., list[Trajectory]]) -> str:
    """One digest of `count` episodes of a recipe, four a question; `play` runs and scores them."""
    recipe = offline(load_recipe(name))
    engine = ScriptedEngine(write, context_length=60_000)
    trajectories = play(recipe, engine, questions(max(1, count // 4)), 4)
    joined = "".join(map(digest, trajectories))
    return hashlib.blake2b(joined.encode(), digest_size=12).hexdigest()
