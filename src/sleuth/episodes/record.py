"""Record: one episode while it is played. It grows segment by segment and ends as a frozen Trajectory.

Invariant: tokens are appended once, as fed or as sampled; nothing is ever decoded and encoded
again, and only policy segments are read for actions.
"""

import asyncio
import hashlib
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sleuth.engines.base import Completion, Engine, Message, Request, Sampling
from sleuth.episodes.conversation import first_queries, interleaved
from sleuth.episodes.events import Found, Searching, Watch, Writing, Written, ignore
from sleuth.episodes.limits import Limits
from sleuth.episodes.passages import neutral_hit
from sleuth.episodes.tags import find_tags
from sleuth.errors import RolloutError
from sleuth.retrievers.base import Retriever
from sleuth.types import Action, Ending, Field, Hit, Question, Segment, Trajectory, seen

Render = Callable[[Sequence[Hit]], str]
"""Passages → the text that shows them."""
PromptWriter = Callable[[Sequence[Hit]], Sequence[tuple[str, str]]]
"""Passages for which there is room → chat turns (role, content)."""

NOTHING_TO_DROP = "backtrack with nothing to drop"
"""Reason of an invalid backtrack; rewards recognise it by this text."""


class Decision(NamedTuple):
    """The action in one turn of the model."""

    kind: str
    """"search", "answer", "refuse", "backtrack", "invalid", or a protocol's own kind."""
    text: str = ""
    """Query, answer or reason; for "invalid", why."""


@dataclass(slots=True)
class Record:
    """The mutable state of one episode, extended by its two awaited calls, `sample` and `search`."""

    question: Question
    """With neutralised text, after the earlier exchanges of its conversation; `source` keeps the original."""
    source: Question
    sample_number: int
    seed: int
    engine: Engine
    retriever: Retriever
    limits: Limits
    sampling: Sampling
    tags: tuple[str, ...] = ()
    """Tags whose bodies become fields."""
    forgives: bool = False
    """Whether an invalid action is answered; otherwise it ends the episode."""
    segments: list[Segment] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    opening: tuple[Message, ...] = ()
    """Chat turns that opened the current context."""
    shown: list[tuple[Hit, ...]] = field(default_factory=list)
    """Hits of each search so far; () for one that was dropped."""
    fork: int = -1
    """See Trajectory.fork."""
    ending: Ending | None = None
    fault: str = ""
    watch: Watch = ignore
    """Receives events as they happen."""

    @property
    def is_new(self) -> bool:
        """Whether no prompt has been written yet."""
        return not self.segments

    @property
    def is_open(self) -> bool:
        """Whether the episode has not ended."""
        return self.ending is None

    @property
    def turns(self) -> list[str]:
        """Texts of the policy so far, turn by turn."""
        return [segment.text for segment in self.segments if segment.author == "policy"]

    @property
    def tokens(self) -> list[int]:
        """The current context: every segment that was not dropped."""
        return [token for segment in seen(self.segments, len(self.segments)) for token in segment.tokens]

    @property
    def messages(self) -> list[Message]:
        """The current context as chat turns."""
        live = seen(self.segments, len(self.segments))
        return [*self.opening, *(Message(_ROLES[s.author], s.text) for s in live if s.author != "prompt")]

    async def sample(self, stops: Sequence[str] = ()) -> Completion:
        """Let the model write the next turn, and append it. Raises RolloutError if the request was refused."""
        sampling = replace(self.sampling, stop=tuple(stops), max_new_tokens=self.limits.max_new_tokens)
        on_text = None if self.watch is ignore else self._pieces()
        request = Request(self.tokens, derive_seed(self.seed, len(self.turns)), tuple(self.messages), on_text)
        completion = await self.engine.sample(request, sampling)
        if completion.fault:
            raise RolloutError(completion.fault)
        index = len(self.segments)
        written = (completion.text, completion.tokens, completion.logprobs, completion.ends, completion.stop)
        self.segments.append(Segment("policy", *written))
        found = find_tags(completion.text, self.tags)
        fields = [Field(tag.name, tag.body, index, tag.start, tag.end) for tag in found]
        self.fields.extend(fields)
        self.watch(Written(completion.text, tuple(fields)))
        return completion

    async def search(self, query: str, retriever: Retriever | None = None) -> list[Hit]:
        """Passages for a query, from this episode's retriever or another; see Retriever.find."""
        self.watch(Searching(query))
        hits = await (retriever or self.retriever).find(query, self.limits.top_k)
        self.watch(Found(query, tuple(hits)))
        return hits

    async def search_question(self, retriever: Retriever | None = None) -> list[Hit]:
        """Passages for the question itself; for a follow-up of several searches, see first_queries."""
        queries = first_queries(self.source)
        if len(queries) == 1:
            return await self.search(queries[0], retriever)
        found = await asyncio.gather(*(self.search(query, retriever) for query in queries))
        return interleaved(found, self.limits.top_k)

    def prompt(self, hits: Sequence[Hit], write: PromptWriter) -> None:
        """Open a context, dropping passages from the end until a whole turn fits after it.

        Segments of an earlier context stay in the record and leave the context, as after a backtrack.
        """
        here = len(self.segments)
        self.segments = [s if s.until >= 0 else replace(s, until=here) for s in self.segments]
        kept = [neutral_hit(hit) for hit in hits]
        room = self.limits.max_context - self.limits.max_new_tokens
        while True:
            self.opening = tuple(Message(*turn) for turn in write(kept))
            tokens = self.engine.tokenizer.chat(self.opening)
            if len(tokens) <= room or not kept:
                break
            kept.pop()
        text = "\n".join(message.content for message in self.opening)
        self.segments.append(Segment("prompt", text, tuple(tokens), hits=tuple(kept)))
        if len(tokens) > room:
            self.ending = "context"
        if not here and kept:
            self.shown.append(tuple(kept))

    def act(self, decision: Decision) -> Decision | None:
        """Record the action of the last turn; an answer, a refusal or a limit ends the episode.

        Returns the action that the world must answer, None once the episode has ended. A search in
        the last turn cannot run and counts as invalid.
        """
        last = len(self.turns) >= self.limits.max_steps
        if decision.kind == "search" and last:
            decision = Decision("invalid", "the step limit was reached before this search could run")
        if decision.kind == "backtrack" and not self._backtrack():
            decision = Decision("invalid", NOTHING_TO_DROP)
        index = max(i for i, s in enumerate(self.segments) if s.author == "policy")
        self.actions.append(Action(decision.kind, decision.text, index))
        self.watch(self.actions[-1])
        if decision.kind in ("answer", "refuse"):
            self.ending = "answered" if decision.kind == "answer" else "refused"
        elif self.segments[index].stop == "context":
            self.ending = "context"
        elif last or (decision.kind == "invalid" and not self.forgives):
            self.ending = "steps"
        return decision if self.ending is None else None

    def show(self, hits: Sequence[Hit], render: Render) -> None:
        """Show search results: passages are dropped, then the last one cut, until they fit."""
        kept = [neutral_hit(hit) for hit in hits]
        room = self._room(self.limits.max_passage_tokens)
        encode = self.engine.tokenizer.encode
        while len(tokens := encode(text := render(kept))) > room and len(kept) > 1:
            kept.pop()
        if kept and len(tokens) > room:
            kept = self._cut(kept[0], room, render)
            tokens = encode(text := render(kept))
        self.shown.append(tuple(kept))
        if text:
            self._append(text, tokens, kept)

    def reply(self, text: str) -> None:
        """Append text of the environment, if any; without room for another turn the episode ends."""
        if text:
            self._append(text, self.engine.tokenizer.encode(text))

    def _append(self, text: str, tokens: Sequence[int], hits: Sequence[Hit] = ()) -> None:
        if len(tokens) > self._room(len(tokens)):
            self.ending = "context"
        else:
            self.segments.append(Segment("world", text, tuple(tokens), hits=tuple(hits)))

    def end(self, ending: Ending = "steps") -> None:
        """End the episode, unless it has ended already."""
        self.ending = self.ending or ending

    def fail(self, fault: str) -> None:
        """End the episode because something outside the policy failed."""
        self.ending, self.fault = "fault", fault

    def trajectory(self) -> Trajectory:
        """The frozen record of the episode."""
        return Trajectory(
            question=self.source,
            segments=tuple(self.segments),
            actions=tuple(self.actions),
            fields=tuple(self.fields),
            ending=self.ending or "steps",
            sample=self.sample_number,
            seed=self.seed,
            fork=self.fork,
            fault=self.fault,
        )

    def resume(self, trajectory: Trajectory, index: int, opening: Sequence[tuple[str, str]]) -> None:
        """Continue from just before policy segment `index` of a finished episode.

        The context is, token for token, the one that segment was written in; samples differ from
        the trajectory's. `opening`: the chat turns of its prompt. RolloutError for several contexts.
        """
        if sum(segment.author == "prompt" for segment in trajectory.segments) > 1:
            raise RolloutError(
                f"question {trajectory.question.id!r}: an episode of several contexts cannot be branched"
            )
        self.fork = index
        self.seed = derive_seed("fork", trajectory.seed, index, self.sample_number)
        segments = self.segments = undo_drops(trajectory.segments[:index])
        self.actions = [action for action in trajectory.actions if action.segment < index]
        self.fields = [field for field in trajectory.fields if field.segment < index]
        self.opening = tuple(Message(*turn) for turn in opening)
        searches = [action.segment for action in self.actions if action.kind == "search"]
        first = [segments[0].hits] if segments[0].hits else []
        self.shown = [*first, *(() if segments[s].until >= 0 else segments[s + 1].hits for s in searches)]

    def _pieces(self) -> Callable[[str], None]:
        """A function that passes pieces of text from any thread to `watch`, in order."""
        loop, owner = asyncio.get_running_loop(), threading.get_ident()

        def piece(text: str) -> None:
            if threading.get_ident() == owner:
                self.watch(Writing(text))
            else:
                loop.call_soon_threadsafe(self.watch, Writing(text))

        return piece

    def _backtrack(self) -> bool:
        """Drop the last search and its results from the context; False if there is nothing to drop."""
        search = last_search(self.segments, self.actions)
        if search is None:
            return False
        searches = [action.segment for action in self.actions if action.kind == "search"]
        # Counted from the end: a first search made for the prompt has no action.
        self.shown[searches.index(search) - len(searches)] = ()
        self.segments = drop(self.segments, search)
        return True

    def _room(self, cap: int) -> int:
        return min(cap, self.limits.max_context - self.limits.max_new_tokens - len(self.tokens))

    def _cut(self, hit: Hit, room: int, render: Render) -> list[Hit]:
        """The longest word-wise beginning of one passage that fits; no passage if none does."""
        words = hit.passage.text.split()

        def beginning(count: int) -> Hit:
            return Hit(replace(hit.passage, text=" ".join(words[:count])), hit.score)

        def length(count: int) -> int:
            return len(self.engine.tokenizer.encode(render([beginning(count)])))

        count = bisect_right(range(1, len(words) + 1), room, key=length)
        return [beginning(count)] if count else []


_ROLES = {"policy": "assistant", "world": "user"}


def derive_seed(*parts: object) -> int:
    """A 63-bit seed from any values: the same on every machine, in every order of work."""
    digest = hashlib.blake2b(repr(parts).encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def last_search(segments: Sequence[Segment], actions: Sequence[Action]) -> int | None:
    """Index of the policy segment with the last search that is still in the context; None if there is none."""
    live = (a.segment for a in reversed(actions) if a.kind == "search" and segments[a.segment].until < 0)
    return next(live, None)


def drop(segments: Sequence[Segment], search: int) -> list[Segment]:
    """The segments after the last one has dropped the search in segment `search` and its results.

    The turn that backtracks stays in the context: without it greedy decoding would see the very
    context in which it chose the search, and choose it again.
    """
    dropped = {search, search + 1} if segments[search + 1].author == "world" else {search}
    return [replace(s, until=len(segments)) if i in dropped else s for i, s in enumerate(segments)]


def undo_drops(segments: Sequence[Segment]) -> list[Segment]:
    """The beginning of a trajectory as it was when its last segment had just been written."""
    return [replace(s, until=-1) if s.until > len(segments) else s for s in segments]
