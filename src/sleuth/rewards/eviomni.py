"""EviOmni's reward: answer, length and format, with two answers probed from masked contexts.

Zhao et al. 2025, "EviOmni", §3.1 and §3.2, eqs. 4 to 9: R = 0.8 R_ans + 0.1 R_len + 0.1 R_fmt.
The probes are text of this reward only: they never enter a trajectory, so only {r, e, o_f} trains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple, get_args

from msgspec import Meta

from sleuth.checked import Fraction, NonNegativeFloat, Positive, PositiveFloat
from sleuth.engines.base import Completion, Engine, Message, Request, Sampling
from sleuth.episodes.tags import find_tags
from sleuth.errors import ConfigError
from sleuth.metrics.answers import f1, golds_of, rules_for
from sleuth.metrics.evidence import passages_shown, tokens_between
from sleuth.protocols.eviomni import fill, passage_lines
from sleuth.rewards.base import Known, Reward
from sleuth.text import neutralise
from sleuth.types import Field, Passage, Score, Trajectory

Output = Literal["rationale", "evidence", "full"]
OUTPUTS = get_args(Output)
"""o_r, o_e and o_f of eq. 4."""
_BODIES = {"rationale": "reason", "evidence": "extract"}


class Lengths(NamedTuple):
    """L_r, L_e and L_P, all in the same unit."""

    rationale: int
    evidence: int
    passages: int


@dataclass(frozen=True)
class EviOmniReward(Reward):
    """R = α_a R_ans + α_l R_len + α_f R_fmt (eq. 9); the parts are the unweighted R_ans, R_len and R_fmt."""

    instruction: str
    """The policy's prompt, which the probes repeat with what is masked left out."""
    outputs: Annotated[tuple[Output, ...], Meta(min_length=1)] = OUTPUTS
    """Whose F1 R_ans averages: any of rationale, evidence and full (Table 6)."""
    answer_weight: NonNegativeFloat = 0.8
    """α_a."""
    length_weight: NonNegativeFloat = 0.1
    """α_l."""
    format_weight: NonNegativeFloat = 0.1
    """α_f."""
    tau: PositiveFloat = 0.5
    """τ > 0, temperature of R_len_r."""
    gamma: NonNegativeFloat = 0.5
    """γ ≥ 0, skewness of R_len_e."""
    omega: Fraction = 0.9
    """ω in [0, 1], share saved from which R_len_e is full."""
    probe_tokens: Positive = 32
    """Most tokens of o_r and of o_e."""
    rule: str = "default"
    """Whose answer rules F1 follows: a data set's name."""
    probed: tuple[tuple[str, str], ...] = ()
    """Known answers of the probes, as (output, reply); only `given` sets it, for one transcript."""

    def cross_check(self) -> None:
        if len(set(self.outputs)) < len(self.outputs):
            raise ConfigError(f"eviomnireward.outputs must differ, not {', '.join(self.outputs)}")
        rules_for(self.rule)

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """Parts: answer, length, format. Invalid where a probe is needed and missing."""
        answers = self._probe(trajectories, engine)
        return [self._score(t, found, engine) for t, found in zip(trajectories, answers, strict=True)]

    def given(self, known: Known) -> Reward:
        """This reward with the probes' answers that are known."""
        found = {"rationale": known.rationale_answer, "evidence": known.evidence_answer}
        answers = tuple((name, reply) for name, reply in found.items() if reply is not None)
        return replace(self, probed=answers) if answers else self

    def _score(
        self, trajectory: Trajectory, answers: dict[str, str | None] | str, engine: Engine | None
    ) -> Score:
        if isinstance(answers, str):
            return Score(0.0, {}, invalid=answers)
        answers = answers | {"full": trajectory.answer}
        golds, rules = golds_of(trajectory.question), rules_for(self.rule)
        parts = {
            "answer": math.fsum(f1(answers[name], golds, rules) for name in self.outputs) / len(self.outputs),
            # Evidence that was never begun has no length, and must not pass for the shortest of all.
            "length": self.length(lengths(trajectory, engine)) if _field(trajectory, "evidence") else 0.0,
            "format": float(not trajectory.malformed),
        }
        weights = (self.answer_weight, self.length_weight, self.format_weight)
        return Score(math.fsum(w * part for w, part in zip(weights, parts.values(), strict=True)), parts)

    def length(self, size: Lengths) -> float:
        """R_len: the mean of the two length rewards."""
        return (rationale_length(size, self.tau) + evidence_length(size, self.gamma, self.omega)) / 2

    def _probe(
        self, trajectories: Sequence[Trajectory], engine: Engine | None
    ) -> list[dict[str, str | None] | str]:
        """o_r and o_e of each trajectory, None where there is nothing to probe; or why one is missing.

        All contexts go to the engine in one batch.
        """
        found: list[dict[str, str | None] | str] = []
        asked: list[tuple[int, str, Request]] = []
        known: dict[str, str | None] = {name: _stated(reply) for name, reply in self.probed}
        for index, trajectory in enumerate(trajectories):
            answers = {"rationale": None, "evidence": None} | known
            open_ = [
                n for n in self.outputs if n != "full" and answers[n] is None and _written(trajectory, n)
            ]
            if open_ and engine is None:
                found.append(
                    f"probes.{open_[0]}: the answer from the {open_[0]} alone is neither given nor can be generated: no engine"
                )
                continue
            found.append(answers)
            if engine is not None:
                asked += [(index, name, self.request(trajectory, name, engine)) for name in open_]
        if engine is not None and asked:
            replies = engine.generate([request for _, _, request in asked], self._sampling)
            for (index, name, _), reply in zip(asked, replies, strict=True):
                _note(found, index, name, reply)
        return found

    @property
    def _sampling(self) -> Sampling:
        return Sampling(self.probe_tokens, temperature=0.0, stop=("</answer>",))

    def request(self, trajectory: Trajectory, name: str, engine: Engine) -> Request:
        """The masked context of o_r or o_e, prefilled from nothing (eq. 4).

        rationale: prompt with q and P, then <reason>r</reason><answer>; evidence: prompt with q and
        no passages, then <extract>e</extract><answer>. Everything inserted is neutralised.
        """
        passages = _neutral(passages_shown(trajectory)) if name == "rationale" else []
        question = neutralise(trajectory.question.text).strip()
        tag = _BODIES[name]
        prompt = Message("user", fill(self.instruction, question, passages))
        lead = f"<{tag}>{neutralise(_written(trajectory, name))}</{tag}><answer>"
        tokens = [*engine.tokenizer.chat([prompt]), *engine.tokenizer.encode(lead)]
        return Request(tokens, messages=(prompt, Message("assistant", lead)))


def rationale_length(size: Lengths, tau: float) -> float:
    """R_len_r (eq. 6): more for a rationale longer than the evidence; 0 if either is empty."""
    long, short = size.rationale, size.evidence
    if not long or not short:
        return 0.0
    return _sigmoid((long / short - 1 if long >= short else 1 - short / long) / tau)


def evidence_length(size: Lengths, gamma: float, omega: float) -> float:
    """R_len_e (eq. 7): more for evidence shorter than the passages; 0 without passages.

    Evidence left empty is paid in full, as eq. 7 has it; it earns no R_len_r and its o_e no answer.
    """
    if not size.passages:
        return 0.0
    # One rounding only: 1 - 90/100 is below 0.1.
    saved = (size.passages - size.evidence) / size.passages
    return 1.0 if saved >= omega else float(max(0.0, saved) ** gamma)


def lengths(trajectory: Trajectory, engine: Engine | None = None) -> Lengths:
    """L_r, L_e and L_P: policy tokens where the episode has them and the engine can count the passages, else words."""
    shown = passage_lines(_neutral(passages_shown(trajectory)))
    fields = [_field(trajectory, name) for name in ("rationale", "evidence")]
    if engine is None or any(not s.ends for _, s in trajectory.policy_segments() if s.text):
        rationale, evidence = (len(field.text.split()) if field else 0 for field in fields)
        return Lengths(rationale, evidence, len(shown.split()))
    rationale, evidence = (
        tokens_between(trajectory.segments[f.segment].ends, f.start, f.end) if f and f.text.strip() else 0
        for f in fields
    )
    return Lengths(rationale, evidence, len(engine.tokenizer.encode(shown)) if shown else 0)


def _field(trajectory: Trajectory, name: str) -> Field | None:
    """The last body of the tag, as for answers."""
    return next((f for f in reversed(trajectory.fields) if f.tag == _BODIES[name]), None)


def _written(trajectory: Trajectory, name: str) -> str:
    field = _field(trajectory, name)
    return field.text.strip() if field else ""


def _note(found: list[dict[str, str | None] | str], index: int, name: str, reply: Completion) -> None:
    """Put one probe's answer where it belongs; a context without room is a missing measurement, not a wrong answer."""
    answers = found[index]
    if isinstance(answers, str):
        return
    if reply.fault:
        found[index] = f"the answer from the {name} alone: {reply.fault}"
    elif reply.stop == "context" and not reply.tokens:
        found[index] = f"no room in the context for the answer from the {name} alone"
    else:
        answers[name] = _stated(reply.text)


def _stated(reply: str) -> str:
    """The answer in a probe's output: the last <answer>, in which eq. 5 has it, else what comes before </answer>.

    The tag itself must not count as a word of the answer: "<answer> Paris </answer>" would have half the F1.
    """
    blocks = find_tags(reply, ("answer",))
    return (blocks[-1].body if blocks else reply.split("</answer>", 1)[0]).strip()


def _neutral(passages: Sequence[Passage]) -> list[Passage]:
    """As the episode shows them: no tag, no control token, no line of their own; done twice it changes nothing."""
    return [replace(p, title=_line(p.title), text=_line(p.text)) for p in passages]


def _line(text: str) -> str:
    return " ".join(neutralise(text).split())


def _sigmoid(x: float) -> float:
    # Both forms, since e^-x overflows for a very negative x.
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
