"""The episodes of rollouts.py as a protocol of Sleuth's, and as the rollout function of a TRL user.

A turn ends with its sentence; the environment answers with invented documents, which differ between samples.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollouts import CUE, STOPS, TURNS, documents, generate, news, question_text
from sleuth.episodes.limits import Limits
from sleuth.episodes.protocol import AgentProtocol, Chat
from sleuth.episodes.record import Decision, Record
from sleuth.episodes.world import World
from sleuth.recipes import load_recipe
from sleuth.retrievers.none import NoRetriever
from sleuth.rollouts.run import roll_out
from sleuth.types import Field, Hit, Passage, Question, Segment, Trajectory

TRUNK = (-1, 0)


@dataclass(frozen=True)
class Retelling(AgentProtocol):
    """Episodes of a fixed number of turns with scripted documents between them."""

    turns: int = TURNS
    documents: int = 4
    """Documents after each turn, about 45 tokens each."""
    replayed: tuple[tuple[int, int], ...] = ()
    """(fork, sample) of the siblings whose documents sample 0, 1, … gets, each as a whole episode."""

    stops = STOPS

    async def play(self, record: Record) -> None:
        """Every turn is a search, until the step limit."""
        if record.is_new:
            record.prompt((), lambda shown: self.prompt(record.question, shown))
        while record.is_open:
            await record.sample(self.stops)
            if record.act(self.read(record.turns[-1])):
                number = record.sample_number
                place = self.replayed[number] if self.replayed else (record.fork, number)
                record.reply(self.answer(record.question.text, len(record.turns) - 1, place))

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        return (("text", question.text),)

    def read(self, text: str) -> Decision:
        return Decision("search", text or "nothing")

    def answer(self, question: str, turn: int, place: tuple[int, int]) -> str:
        """Documents after a turn; a fork has those of the trunk up to the turn in which it forked."""
        fork, _ = place
        own = place if fork < 0 or 2 * turn + 1 >= fork else TRUNK
        return news(random.Random(f"{question}/{turn}/{own}"), self.documents)


def asked(count: int) -> list[Question]:
    """Questions with whole prompts as their texts."""
    return [Question(str(i), f"{question_text(i)}\n{CUE}", ("",)) for i in range(count)]


def in_rounds(
    model: Any, hf: Any, protocol: Retelling, prompts: Sequence[str], max_new: int
) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Prompts, completions and their masks of whole episodes by transformers' generate, turn by turn.

    The mask is 1 on tokens of the model. Equal prompts are samples 0, 1, … of one question.
    """
    seen: Counter[str] = Counter()
    starts = [hf(prompt)["input_ids"] for prompt in prompts]
    places = []
    for prompt in prompts:
        places.append((-1, seen[prompt]))
        seen[prompt] += 1
    contexts, masks = [list(start) for start in starts], [list[int]() for _ in starts]
    for turn in range(protocol.turns):
        for index, tokens in enumerate(generate(model, hf, contexts, max_new)):
            contexts[index] += tokens
            masks[index] += [1] * len(tokens)
            if turn + 1 < protocol.turns:
                text = protocol.answer(prompts[index], turn, places[index])
                world = hf(text, add_special_tokens=False)["input_ids"]
                contexts[index] += world
                masks[index] += [0] * len(world)
    return starts, [c[len(s) :] for c, s in zip(contexts, starts, strict=True)], masks


def trl_rollout(protocol: Retelling, max_new: int, done: Callable[[list[list[int]]], None]) -> Any:
    """A rollout function for GRPOTrainer; `done` is called with the completions."""
    from trl.models import unwrap_model_for_generation

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model:
            starts, completions, masks = in_rounds(
                model, trainer.processing_class, protocol, prompts, max_new
            )
        done(completions)
        return {"prompt_ids": starts, "completion_ids": completions, "env_mask": masks, "logprobs": None}

    return rollout


def eviomni_episodes(engine: Any, questions: int, samples: int, max_new: int) -> tuple[list[Trajectory], Any]:
    """Greedy episodes of eviomni/cpu over five invented passages, and its reward.

    An untrained model does not write the tags, so each reply is then replaced by one that does.
    """
    recipe = load_recipe("eviomni/cpu")
    limits = Limits(max_steps=1, max_new_tokens=max_new, top_k=5, max_passage_tokens=900)
    asked = []
    for number in range(questions):
        rng = random.Random(number)
        passages = tuple(Passage(f"{number}/{i}", "", documents(rng, 2)) for i in range(5))
        asked.append(Question(str(number), "What is the population of Aldon?", ("1",), passages))
    groups = roll_out(asked, World(recipe.protocol, engine, recipe.retriever, limits), samples=samples)
    return [_tagged(t, engine) for group in groups for t in group], recipe.reward


def _tagged(trajectory: Trajectory, engine: Any) -> Trajectory:
    rng = random.Random(f"{trajectory.question.id}/{trajectory.sample}")
    bodies = {"reason": documents(rng, 2).strip(), "extract": documents(rng, 1).strip()}
    text, fields = "", []
    for tag, body in bodies.items():
        start = len(text) + len(f"<{tag}>")
        fields.append(Field(tag, body, 1, start, start + len(body)))
        text += f"<{tag}>{body}</{tag}>"
    segment = Segment("policy", text, tuple(engine.tokenizer.encode(text)))
    return replace(trajectory, segments=(trajectory.segments[0], segment), fields=tuple(fields))


class Greedy(World):
    """A world whose episodes are greedy in training too, so that every way writes the same tokens."""

    def sampled(self, temperature: float, top_p: float = 1.0) -> World:
        return self


def world_of(engine: Any, max_new: int, **changes: Any) -> Greedy:
    """Retelling, with changes to it, over this engine."""
    protocol = Retelling(**changes)
    limits = Limits(max_steps=protocol.turns, max_new_tokens=max_new, max_context=4096)
    return Greedy(protocol, engine, NoRetriever(), limits)
