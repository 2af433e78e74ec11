"""Episode: one question being worked on. Grows segment by segment and ends as a frozen Trajectory.

Invariant: tokens are appended once, as fed or as sampled; nothing is ever decoded and encoded
again, and only policy segments are read for actions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sleuth.engines.base import Completion, Message, Request, Tokenizer
from sleuth.errors import RolloutError
from sleuth.protocols.base import NOTHING_TO_DROP, AgentProtocol, Decision, find_tags
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.backtrack import drop, last_search, undo_drops
from sleuth.rollouts.limits import Limits
from sleuth.text import neutralise
from sleuth.types import Action, Ending, Field, Hit, Passage, Question, Segment, Trajectory, seen

PromptWriter = Callable[[Question, Sequence[Hit]], Sequence[tuple[str, str]]]
"""Chat turns for a question and the passages there is room for."""


def derive_seed(*parts: object) -> int:
    """A 63-bit seed from any values: the same on every machine, in every order of work."""
    digest = hashlib.blake2b(repr(parts).encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def neutral_hit(hit: Hit) -> Hit:
    """The hit with text that cannot act: no tag, no control token, no line of its own.

    One line per passage, because a line such as "Doc 9(Title: …)" inside a passage would
    otherwise look like one more passage.
    """
    passage = hit.passage
    title, text = (" ".join(neutralise(part).split()) for part in (passage.title, passage.text))
    return Hit(Passage(passage.id, title, text), hit.score)


@dataclass(slots=True)
class Episode:
    """The mutable state of one rollout."""

    question: Question
    """With neutralised text; `source` keeps the original."""
    source: Question
    sample: int
    seed: int
    retriever: Retriever
    protocol: AgentProtocol
    limits: Limits
    segments: list[Segment] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    prompt: tuple[Message, ...] = ()
    """The chat turns that opened the present context."""
    messages: list[Message] = field(default_factory=list)
    """What the policy sees, as chat turns."""
    tokens: list[int] = field(default_factory=list)
    """What the policy sees: the segments that no backtrack dropped."""
    shown: list[tuple[Hit, ...]] = field(default_factory=list)
    """Hits of each search so far; () for one that was dropped."""
    steps: int = 0
    ending: Ending | None = None
    fault: str = ""

    @classmethod
    def start(
        cls,
        question: Question,
        sample: int,
        seed: int,
        retriever: Retriever,
        protocol: AgentProtocol,
        limits: Limits,
    ) -> Episode:
        """An episode before its prompt is written."""
        neutral = replace(question, text=neutralise(question.text).strip())
        own_seed = derive_seed(seed, question.dataset, question.id, sample)
        return cls(neutral, question, sample, own_seed, retriever.for_question(question), protocol, limits)

    @classmethod
    def fork(
        cls,
        trajectory: Trajectory,
        index: int,
        sample: int,
        retriever: Retriever,
        protocol: AgentProtocol,
        limits: Limits,
    ) -> Episode:
        """A new episode that goes on from what was there before policy segment `index` was written.

        Its context is, token for token, the one that segment was written in; its samples differ
        from the trajectory's and from those of other `sample` numbers.
        """
        if sum(segment.author == "prompt" for segment in trajectory.segments) > 1:
            raise RolloutError(
                f"question {trajectory.question.id!r}: an episode of several contexts cannot be branched"
            )
        episode = cls.start(trajectory.question, sample, 0, retriever, protocol, limits)
        episode.seed = derive_seed("fork", trajectory.seed, index, sample)
        segments = undo_drops(trajectory.segments[:index])
        episode.segments = segments
        episode.actions = [action for action in trajectory.actions if action.segment < index]
        episode.fields = [field for field in trajectory.fields if field.segment < index]
        episode.steps = sum(segment.author == "policy" for segment in segments)
        turns = protocol.prompt(episode.question, segments[0].hits)
        episode.prompt = tuple(Message(*turn) for turn in turns)
        episode.tokens, episode.messages = see(segments, episode.prompt)
        searches = [action.segment for action in episode.actions if action.kind == "search"]
        first = [segments[0].hits] if segments[0].hits else []
        episode.shown = [*first, *(() if segments[s].until >= 0 else segments[s + 1].hits for s in searches)]
        return episode

    def open(self, hits: Sequence[Hit], tokenizer: Tokenizer) -> None:
        """Write the prompt, dropping passages from the end until a whole turn fits after it."""
        shown = self._write_prompt([neutral_hit(hit) for hit in hits], self.protocol.prompt, tokenizer)
        if shown:
            self.shown.append(shown)

    def request(self) -> Request:
        """What the engine is asked to continue next."""
        return Request(self.tokens, derive_seed(self.seed, self.steps), tuple(self.messages))

    def hear(self, completion: Completion) -> Decision:
        """Append what the policy wrote and read the one action in it."""
        index = len(self.segments)
        self.segments.append(
            Segment(
                "policy",
                completion.text,
                completion.tokens,
                completion.logprobs,
                completion.ends,
                completion.stop,
            )
        )
        self.tokens.extend(completion.tokens)
        self.messages.append(Message("assistant", completion.text))
        self.steps += 1
        self.fields.extend(
            Field(t.name, t.body, index, t.start, t.end)
            for t in find_tags(completion.text, self.protocol.tags)
        )
        decision = self.protocol.decide(self.question, self._turns)
        last = self.steps >= self.limits.max_steps
        if decision.kind == "search" and last:
            decision = Decision("invalid", "the step limit was reached before this search could run")
        if decision.kind == "backtrack" and not self._backtrack():
            decision = Decision("invalid", NOTHING_TO_DROP)
        self.actions.append(Action(decision.kind, decision.text, index))
        if decision.kind in ("answer", "refuse"):
            self.ending = "answered" if decision.kind == "answer" else "refused"
        elif completion.stop == "context":
            self.ending = "context"
        elif last or (decision.kind == "invalid" and not self.protocol.invalid_message):
            self.ending = "steps"
        return decision

    def tell(self, hits: Sequence[Hit], tokenizer: Tokenizer) -> None:
        """Show search results: passages are dropped, then the last one cut, until they fit."""
        kept = [neutral_hit(hit) for hit in hits]
        if self._renew([*self.shown, tuple(kept)], tokenizer):
            self.shown.append(tuple(kept))
            return
        room = self._room(self.limits.max_passage_tokens)
        text, tokens = self._render(kept, tokenizer)
        while len(tokens) > room and len(kept) > 1:
            kept.pop()
            text, tokens = self._render(kept, tokenizer)
        if len(tokens) > room and kept:
            kept = self._cut(kept[0], room, tokenizer)
            text, tokens = self._render(kept, tokenizer)
        self.shown.append(tuple(kept))
        self._append_world(text, tokens, tuple(kept))

    def reply(self, text: str, tokenizer: Tokenizer) -> None:
        """Answer an action that finds no passages with one of the protocol's fixed replies; "" is none."""
        if not self._renew(self.shown, tokenizer) and text:
            self._append_world(text, tokenizer.encode(text), ())

    def fail(self, fault: str) -> None:
        """End the episode for a reason that is not the policy's doing."""
        self.ending, self.fault = "fault", fault

    def finish(self) -> Trajectory:
        """The frozen record of the episode."""
        trajectory = Trajectory(
            question=self.source,
            segments=tuple(self.segments),
            actions=tuple(self.actions),
            fields=tuple(self.fields),
            ending=self.ending or "steps",
            sample=self.sample,
            seed=self.seed,
            fault=self.fault,
        )
        return replace(trajectory, malformed=self.protocol.check(trajectory))

    @property
    def _turns(self) -> list[str]:
        """What the policy wrote so far, turn by turn."""
        return [segment.text for segment in self.segments if segment.author == "policy"]

    def _renew(self, shown: Sequence[Sequence[Hit]], tokenizer: Tokenizer) -> bool:
        """Open the new context that the protocol wants for the next turn; False if it wants none.

        Whatever came before leaves the context, as after a backtrack, and stays in the record.
        """
        turns = self._turns
        hits = self.protocol.renew(turns, shown)
        if hits is None:
            return False
        here = len(self.segments)
        self.segments = [s if s.until >= 0 else replace(s, until=here) for s in self.segments]
        self._write_prompt(hits, lambda q, h: self.protocol.renewed_prompt(q, h, turns), tokenizer)
        return True

    def _write_prompt(
        self, hits: Sequence[Hit], write: PromptWriter, tokenizer: Tokenizer
    ) -> tuple[Hit, ...]:
        """Append a prompt that begins a context, and return the passages for which there was room."""
        shown = list(hits)
        room = self.limits.max_context - self.limits.max_new_tokens
        while True:
            messages = [Message(*turn) for turn in write(self.question, shown)]
            tokens = tokenizer.chat(messages)
            if len(tokens) <= room or not shown:
                break
            shown.pop()
        self.prompt, self.messages, self.tokens = tuple(messages), messages, list(tokens)
        text = "\n".join(message.content for message in messages)
        self.segments.append(Segment("prompt", text, tuple(tokens), hits=tuple(shown)))
        if len(tokens) > room:
            self.ending = "context"
        return tuple(shown)

    def _backtrack(self) -> bool:
        """Drop the last search and what it found from the context; False if there is nothing to drop."""
        search = last_search(self.segments, self.actions)
        if search is None:
            return False
        searches = [action.segment for action in self.actions if action.kind == "search"]
        # Counted from the end: a first search made for the prompt is no action.
        self.shown[searches.index(search) - len(searches)] = ()
        self.segments = drop(self.segments, search)
        self.tokens, self.messages = see(self.segments, self.prompt)
        return True

    def _room(self, cap: int) -> int:
        return min(cap, self.limits.max_context - self.limits.max_new_tokens - len(self.tokens))

    def _render(self, hits: Sequence[Hit], tokenizer: Tokenizer) -> tuple[str, list[int]]:
        text = self.protocol.show(hits)
        return text, tokenizer.encode(text)

    def _cut(self, hit: Hit, room: int, tokenizer: Tokenizer) -> list[Hit]:
        """The longest word-wise beginning of one passage that fits; no passage if none does."""
        words = hit.passage.text.split()
        low, high = 0, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            if len(self._render([_first_words(hit, words, middle)], tokenizer)[1]) <= room:
                low = middle
            else:
                high = middle - 1
        return [_first_words(hit, words, low)] if low else []

    def _append_world(self, text: str, tokens: Sequence[int], hits: tuple[Hit, ...]) -> None:
        if len(tokens) > self._room(len(tokens)):
            self.ending = "context"
            return
        self.segments.append(Segment("world", text, tuple(tokens), hits=hits))
        self.tokens.extend(tokens)
        self.messages.append(Message("user", text))


def see(segments: Sequence[Segment], prompt: Sequence[Message]) -> tuple[list[int], list[Message]]:
    """What whoever writes next sees of the segments so far: tokens, and the same as chat turns."""
    live = seen(segments, len(segments))
    later = [Message(_ROLES[s.author], s.text) for s in live if s.author != "prompt"]
    return [token for s in live for token in s.tokens], [*prompt, *later]


_ROLES = {"policy": "assistant", "world": "user"}


def _first_words(hit: Hit, words: Sequence[str], count: int) -> Hit:
    return Hit(replace(hit.passage, text=" ".join(words[:count])), hit.score)
