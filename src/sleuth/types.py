"""The values that flow: Question → Trajectory (of Segments) → Score → Signal.

Frozen, slotted, torch-free. One invariant carries the whole framework: every Segment names
its author, and the loss mask, the actions and the rewards are all derived from the segments
whose author is "policy". A mask is never stored next to tokens, so the two cannot disagree.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self

Author = Literal["prompt", "policy", "world"]
"""Author of a segment: the instructions, the model being trained, or the environment."""

StopReason = Literal["stop", "eos", "length", "context", ""]
"""Why generation ended: a stop string, end of sequence, the token limit, no room left; "" = not generated."""

Ending = Literal["answered", "refused", "steps", "context", "fault"]
"""How an episode ended: an answer, a refusal, the step limit, no context left, or an outside failure."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrievable piece of text."""

    id: str
    """Unique in its corpus; this is what a citation names."""
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage a retriever returned."""

    passage: Passage
    score: float
    """Higher is better; comparable only within one result list."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a question's gold reasoning chain (MuSiQue's decomposition, 2Wiki's evidences)."""

    query: str
    """A search that finds the passage, as a person would type it."""
    passage_id: str
    answer: str
    """Part of the answer that this passage contributes."""
    need: str = ""
    """The thing that is searched for, as a noun phrase: "the country whose capital is Paris"."""


class Exchange(NamedTuple):
    """An earlier question of a conversation and its final answer."""

    question: str
    answer: str = ""
    """"" if there was none."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with everything known about its right answer."""

    id: str
    text: str
    answers: tuple[str, ...]
    """Accepted answers, aliases included, the canonical one first; empty only if unanswerable."""
    passages: tuple[Passage, ...] = ()
    """Paragraphs given with the question (the "distractor" settings)."""
    gold_ids: tuple[str, ...] = ()
    """Ids of the passages that together support the answer."""
    answerable: bool = True
    hops: tuple[Hop, ...] = ()
    """The gold chain, in order; empty if the data set has none."""
    kind: str = ""
    """The data set's own question type, such as "bridge" or "comparison"."""
    dataset: str = ""
    rejected: tuple[str, ...] = ()
    """Answers that a person marked as wrong, for preference pairs."""
    history: tuple[Exchange, ...] = ()
    """Earlier exchanges of the same conversation, the oldest first."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of tokens by one author."""

    author: Author
    text: str
    tokens: tuple[int, ...] = ()
    """Token ids exactly as fed to or sampled from the model; empty for a transcript from elsewhere."""
    logprobs: tuple[float, ...] = ()
    """Policy only: natural-log probability of each sampled token at the sampling temperature."""
    ends: tuple[int, ...] = ()
    """Policy only: length of `text` after each token, so that a character span maps to tokens."""
    stop: StopReason = ""
    hits: tuple[Hit, ...] = ()
    """World only: the passages shown in this segment, after any were dropped for room."""
    until: int = -1
    """Index of the first segment that was written without this one in its context, after a backtrack or a new
    context; -1 = all saw it."""

    def __post_init__(self) -> None:
        if self.author != "policy" and self.logprobs:
            raise ValueError(f"a {self.author} segment cannot carry log-probabilities")
        for name in ("logprobs", "ends"):
            values = getattr(self, name)
            if values and len(values) != len(self.tokens):
                raise ValueError(f"{name}: {len(values)} values for {len(self.tokens)} tokens")


@dataclass(frozen=True, slots=True)
class Action:
    """A decision of the policy in one of its segments."""

    kind: str
    """"search", "answer", "refuse", "backtrack", "invalid", or a protocol's own kind."""
    text: str
    """The query, the answer or the reason; for "invalid", why it is invalid."""
    segment: int
    """Index of the policy segment that holds it."""


@dataclass(frozen=True, slots=True)
class Field:
    """The body of one well-formed tag written by the policy, such as an <evaluate> block."""

    tag: str
    text: str
    segment: int
    start: int
    """Character span of the body inside the segment's text."""
    end: int


@dataclass(frozen=True, slots=True)
class StepScore:
    """Score of one action by a step reward."""

    action: str
    """Its kind."""
    parts: dict[str, float]
    """Raw values r_k, before weighting."""
    weights: dict[str, float]
    """Their weights w_k at this step, by the same names."""

    @property
    def total(self) -> float:
        """Σ_k w_k r_k."""
        return math.fsum(self.weights[name] * value for name, value in self.parts.items())


@dataclass(frozen=True, slots=True)
class Score:
    """Score of a trajectory by a reward."""

    total: float
    parts: dict[str, float]
    """Named parts, such as {"answer": 0.0, "evaluation": 0.1}."""
    invalid: str = ""
    """Not empty: the reward could not be computed (say, a judge failed); the sample must not train."""
    steps: tuple[StepScore, ...] = ()
    """For rewards that score every action: one entry per action, in order."""
    details: dict[str, float] = field(default_factory=dict)
    """Further figures to log, from which parts are made, such as each of the answers that one part averages."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode: its segments with their authors, and the actions of the model."""

    question: Question
    segments: tuple[Segment, ...]
    actions: tuple[Action, ...] = ()
    fields: tuple[Field, ...] = ()
    ending: Ending = "steps"
    sample: int = 0
    """Index inside the group of rollouts of one question."""
    seed: int = 0
    fault: str = ""
    """Not empty: something outside the policy failed (retriever, engine); never scored, never trained on."""
    fork: int = -1
    """Index of the policy segment at which this episode left another of the same question; -1 = it is whole."""
    malformed: str = ""
    """Not empty: the first way in which the model broke the protocol's grammar."""
    score: Score | None = None

    @property
    def answer(self) -> str | None:
        """The last answer the policy gave, or None."""
        return next((a.text for a in reversed(self.actions) if a.kind == "answer"), None)

    @property
    def searches(self) -> int:
        return sum(a.kind == "search" for a in self.actions)

    @property
    def hits(self) -> tuple[Hit, ...]:
        """Every passage the model was shown, in order, repeats included."""
        return tuple(hit for segment in self.segments for hit in segment.hits)

    @property
    def tokens(self) -> list[int]:
        """All token ids, prompt first, length T; the last segment's context only if nothing was dropped."""
        return [token for segment in self.segments for token in segment.tokens]

    @property
    def loss_mask(self) -> list[bool]:
        """True exactly where the policy wrote the token, length T. Derived, never stored."""
        return [s.author == "policy" for s in self.segments for _ in s.tokens]

    @property
    def has_drops(self) -> bool:
        """Whether a backtrack or a new context dropped a segment; `tokens` is then the context of no segment."""
        return any(segment.until >= 0 for segment in self.segments)

    def context(self, index: int) -> list[int]:
        """The token ids that segment `index` was written after: earlier segments, dropped ones left out."""
        return [token for segment in seen(self.segments, index) for token in segment.tokens]

    @property
    def response_length(self) -> int:
        return sum(len(s.tokens) for s in self.segments if s.author == "policy")

    def bodies(self, tag: str) -> list[str]:
        """Texts of every well-formed `tag` block of the policy, in order."""
        return [field.text for field in self.fields if field.tag == tag]

    def policy_segments(self) -> Iterator[tuple[int, Segment]]:
        """The model's own segments with their index."""
        return ((i, s) for i, s in enumerate(self.segments) if s.author == "policy")

    def scored(self, score: Score) -> Self:
        """A copy that carries `score`."""
        return replace(self, score=score)


def seen(segments: Sequence[Segment], index: int) -> list[Segment]:
    """The segments that segment `index` is written after; `index` may be one past the last."""
    return [segment for segment in segments[:index] if segment.until < 0 or index < segment.until]


@dataclass(frozen=True, slots=True)
class Signal:
    """The credit of one trajectory in an update.

    `weights` has one entry per policy token (length = trajectory.response_length): the
    advantage A_{i,t} for policy-gradient methods, 1.0 for supervised ones.
    """

    trajectory: Trajectory
    weights: tuple[float, ...]
