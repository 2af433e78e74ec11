"""EVO-RAG's seven step rewards and their weighted return.

EVO-RAG, §3.2, for each action a_t at step t = 1, 2, … with progress p = t / T_max:
r_ret = ±1 for a search that does or does not hit a gold document; r_act = −1 for a search with
p ≥ 0.3 that overlaps an earlier one; r_dup = −max_{j<t} cos(q_t, q_j); r_bt = −1 for a backtrack;
r_ref = +1 for a refusal on insufficient evidence, −1 on sufficient; r_step = −1 always;
r_ans = ½ (EM + F1) at the answer. R = Σ_t Σ_k w_k(t) r_k(s_t, a_t).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from msgspec import Meta

from sleuth.encoders.base import Encoder
from sleuth.encoders.minilm import MiniLM
from sleuth.engines.base import Engine
from sleuth.episodes.record import NOTHING_TO_DROP
from sleuth.errors import ConfigError
from sleuth.gold import gold_shown
from sleuth.judges.base import YesNoJudge, yes_or_no
from sleuth.metrics.answers import exact_match, f1, golds_of, rules_for
from sleuth.recipes.evo_rag.curriculum import PARTS, Curriculum, Part
from sleuth.rewards.base import Reward
from sleuth.scale import Scale
from sleuth.types import Action, Hit, Question, Score, StepScore, Trajectory

# EVO-RAG, §3.2, asks ChatGPT-4o for enough_evidence ∈ {yes, no}; the wording is ours.
JUDGE_PROMPT = (
    "Question: {question}\n\nDocuments:\n{documents}\n\n"
    "Do these documents hold enough evidence to answer the question? Reply with yes or no only."
)
FREE_UNTIL = 0.3
"""Progress p from which on an overlapping search is penalised (r_act)."""


@dataclass(frozen=True)
class EvoRAGReward(Reward):
    """The weighted return of an episode, with every step's parts."""

    curriculum: Curriculum = field(default_factory=Curriculum)
    """Weights by stage and step."""
    parts: Annotated[tuple[Part, ...], Meta(min_length=1)] = PARTS
    """Step rewards that count; the others weigh 0 (the ablations of Tables 5 and 6)."""
    encoder: Encoder = field(default_factory=MiniLM)
    """Embeds sub-queries for r_dup."""
    judge: YesNoJudge | None = None
    """Verifies refusals; None = the gold documents do."""
    rule: str = "default"
    """Official answer rules of r_ans: a data set's name, such as "hotpotqa"."""

    by_step: ClassVar[bool] = True

    @property
    def reads_gold(self) -> bool:
        """Where searches are scored, or refusals without a judge."""
        return "retrieval" in self.parts or ("refusal" in self.parts and self.judge is None)

    def cross_check(self) -> None:
        if self.judge is not None and not isinstance(self.judge, YesNoJudge):
            raise ConfigError(f"the judge of refusals must answer yes or no, and {self.judge!r} does not")
        rules_for(self.rule)

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """Parts: each step reward's weighted sum over the steps; steps: raw values and weights."""
        overlaps = self._overlaps(trajectories)
        verdicts = self._verdicts(trajectories)
        return [self._score(*each) for each in zip(trajectories, overlaps, verdicts, strict=True)]

    def stages(self) -> Sequence[Reward]:
        """The reward of Discovery, then of Refinement (§3.5)."""
        return [replace(self, curriculum=replace(self.curriculum, stage=stage)) for stage in (1, 2)]

    def check(self, scale: Scale) -> None:
        """ConfigError unless the curriculum counts as many steps as an episode may have."""
        if self.curriculum.max_steps != scale.max_steps:
            raise ConfigError(
                f"the curriculum counts to {self.curriculum.max_steps} steps but episodes have {scale.max_steps}: "
                "set reward.curriculum.max_steps and scale.max_steps alike"
            )

    def _score(
        self, trajectory: Trajectory, overlaps: dict[int, float], enough: dict[int, bool | str]
    ) -> Score:
        if faults := [verdict for verdict in enough.values() if isinstance(verdict, str)]:
            return Score(math.nan, {}, faults[0])
        if fault := self._gold_fault(trajectory):
            return Score(math.nan, {}, fault)
        steps = []
        for number, action in enumerate(trajectory.actions, 1):
            raw = self._raw(trajectory, number, action, overlaps.get(number, 0.0), bool(enough.get(number)))
            weights = self.curriculum.weights(number)
            used = {part: weights[part] if part in self.parts else 0.0 for part in PARTS}
            steps.append(StepScore(action.kind, raw, used))
        # + 0.0: a penalty that weighs nothing is 0, not −0.
        sums = {part: math.fsum(s.weights[part] * s.parts[part] for s in steps) + 0.0 for part in PARTS}
        return Score(math.fsum(step.total for step in steps), sums, steps=tuple(steps))

    def _raw(
        self, trajectory: Trajectory, step: int, action: Action, overlap: float, enough: bool
    ) -> dict[str, float]:
        """r_k(s_t, a_t) of every part. `overlap` is max cos, 0 unless this is a later search."""
        is_late = self.curriculum.progress(step) >= FREE_UNTIL
        return {
            "retrieval": retrieval_bonus(trajectory, action) if action.kind == "search" else 0.0,
            "retrieval_action": -1.0 if is_late and overlap > 0 else 0.0,
            "overlap": 0.0 - overlap,
            "backtrack": -1.0 if is_backtrack(action) else 0.0,
            "refusal": (-1.0 if enough else 1.0) if action.kind == "refuse" else 0.0,
            "step": -1.0,
            "answer": self._correctness(trajectory, action) if action.kind == "answer" else 0.0,
        }

    def _correctness(self, trajectory: Trajectory, action: Action) -> float:
        """r_ans = ½ (EM + F1), for the answer that ends the episode."""
        if action != trajectory.actions[-1]:
            return 0.0
        golds = golds_of(trajectory.question)
        return (exact_match(action.text, golds, self.rule) + f1(action.text, golds, self.rule)) / 2

    def _gold_fault(self, trajectory: Trajectory) -> str:
        """Why the question's gold documents cannot score a search or a refusal, or ""."""
        question = trajectory.question
        searched = "retrieval" in self.parts and trajectory.searches > 0
        has_refusal = any(action.kind == "refuse" for action in trajectory.actions)
        refused = "refusal" in self.parts and self.judge is None and has_refusal
        if not question.answerable or not (searched or refused):
            return ""
        if searched and not question.gold_ids:
            return "gold_ids: the question names no gold documents, so its searches cannot be scored"
        given = {passage.id for passage in question.passages}
        if trajectory.searches and not (given or trajectory.tokens or trajectory.hits):
            return "passages: the transcript comes without passages, so what its searches found is unknown"
        lost = [gold for gold in question.gold_ids if given and gold not in given]
        return f"gold_ids: {lost[0]!r} points to no passage of the question" if lost else ""

    def _overlaps(self, trajectories: Sequence[Trajectory]) -> list[dict[int, float]]:
        """For each trajectory: step → largest cosine of its query with an earlier one; the first query has none."""
        searches = [
            [(number, a.text) for number, a in enumerate(t.actions, 1) if a.kind == "search"]
            for t in trajectories
        ]
        queries = list(dict.fromkeys(text for found in searches if len(found) > 1 for _, text in found))
        vectors = dict(zip(queries, self.encoder.encode(queries) if queries else (), strict=True))

        def largest(query: str, earlier: Sequence[tuple[int, str]]) -> float:
            return max(float(vectors[query] @ vectors[text]) for _, text in earlier)

        return [
            {number: largest(text, found[:i]) for i, (number, text) in enumerate(found) if i}
            for found in searches
        ]

    def _verdicts(self, trajectories: Sequence[Trajectory]) -> list[dict[int, bool | str]]:
        """For each trajectory: step of a refusal → whether the evidence was enough, or why that is unknown."""
        refusals = [
            # Dropped passages count: dropping good evidence and then refusing must not look honest.
            (i, number, t.question, [hit for s in t.segments[: a.segment] for hit in s.hits])
            for i, t in enumerate(trajectories)
            for number, a in enumerate(t.actions, 1)
            if a.kind == "refuse" and "refusal" in self.parts
        ]
        verdicts: Sequence[bool | str] = [is_enough(question, hits) for *_, question, hits in refusals]
        if self.judge is not None:
            prompts = [judge_prompt(question, hits) for *_, question, hits in refusals]
            verdicts = yes_or_no(self.judge, prompts, "a refusal")
        answers: list[dict[int, bool | str]] = [{} for _ in trajectories]
        for (i, number, *_), verdict in zip(refusals, verdicts, strict=True):
            answers[i][number] = verdict
        return answers


def is_backtrack(action: Action) -> bool:
    """Whether the policy backtracked; one with nothing to drop is invalid and costs all the same."""
    return action.kind == "backtrack" or (action.kind, action.text) == ("invalid", NOTHING_TO_DROP)


def retrieval_bonus(trajectory: Trajectory, search: Action) -> float:
    """r_ret of a search: +1 if its result shows a gold document, −1 if not."""
    result = trajectory.segments[search.segment + 1 : search.segment + 2]
    shown = [hit.passage for segment in result if segment.author == "world" for hit in segment.hits]
    return 1.0 if gold_shown(trajectory.question, shown) else -1.0


def is_enough(question: Question, hits: Iterable[Hit]) -> bool:
    """Whether every gold document was found; without gold documents, whether the question has an answer."""
    return question.answerable and set(question.gold_ids) <= gold_shown(
        question, (hit.passage for hit in hits)
    )


def judge_prompt(question: Question, hits: Iterable[Hit]) -> str:
    """The prompt of the refusal verifier: the question and each document once, on a line of its own."""
    passages = {hit.passage.id: hit.passage for hit in hits}
    lines = [f"{i}. {p.title}: {p.text}" for i, p in enumerate(passages.values(), 1)]
    return JUDGE_PROMPT.format(question=question.text, documents="\n".join(lines) or "(none)")
