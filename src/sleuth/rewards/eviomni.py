"""EviOmni's reward: answer, length and format, with two answers probed from masked contexts.

Zhao et al. 2025, "EviOmni", §3.1 and §3.2, eqs. 4 to 9: R = 0.8 R_ans + 0.1 R_len + 0.1 R_fmt.
The probes are text of this reward only: they never enter a trajectory, so only {r, e, o_f} trains.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple, get_args

from msgspec import Meta

from sleuth.checked import Fraction, NonNegativeFloat, Positive, PositiveFloat
from sleuth.engines.base import Completion, Engine, Message, Request, Sampling
from sleuth.episodes.passages import neutral_passage, passage_lines
from sleuth.episodes.tags import find_tags
from sleuth.errors import ConfigError
from sleuth.metrics.answers import f1, golds_of, rules_for
from sleuth.metrics.evidence import passages_shown, tokens_between
from sleuth.rewards.base import Known, Reward
from sleuth.text import fill, neutralise
from sleuth.types import Field, Score, Trajectory

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
    """R = α_a R_ans + α_l R_len + α_f R_fmt (eq. 9); the parts are the unweighted R_ans, R_len and R_fmt.

    Details are the answer rewards that R_ans averages, for the curves of Figure 5.
    """

    instruction: str
    """The policy's prompt, which the probes repeat without the masked parts."""
    outputs: Annotated[tuple[Output, ...], Meta(min_length=1)] = OUTPUTS
    """Outputs whose F1 R_ans averages: any of rationale, evidence and full (Table 6)."""
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
    """Answer rules that F1 follows: a data set's name."""
    probed: tuple[tuple[str, str], ...] = ()
    """Known answers of the probes, as (output, reply); only `given` sets it, for one transcript."""

    def cross_check(self) -> None:
        if len(set(self.outputs)) < len(self.outputs):
            raise ConfigError(f"eviomnireward.outputs must differ, not {', '.join(self.outputs)}")
        rules_for(self.rule)

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """Parts: answer, length, format; details: answer_rationale, answer_evidence, answer_full.

        Invalid where a probe is needed and missing.
        """
        known = {name for name, _ in self.probed}
        asked = [
            (index, name)
            for index, trajectory in enumerate(trajectories)
            for name in self.outputs
            if name in _BODIES and name not in known and _written(trajectory, name)
        ]
        replies = self._probe([(trajectories[index], name) for index, name in asked], engine)
        probes: list[dict[str, Completion]] = [{} for _ in trajectories]
        for (index, name), reply in zip(asked, replies, strict=True):
            probes[index][name] = reply
        return [self._score(t, own, engine) for t, own in zip(trajectories, probes, strict=True)]

    def given(self, known: Known) -> Reward:
        """This reward with the probes' answers that are known."""
        found = {"rationale": known.rationale_answer, "evidence": known.evidence_answer}
        answers = tuple((name, reply) for name, reply in found.items() if reply is not None)
        return replace(self, probed=answers) if answers else self

    def _score(
        self, trajectory: Trajectory, probes: Mapping[str, Completion], engine: Engine | None
    ) -> Score:
        for name, reply in probes.items():
            # A full context is a missing measurement, not a wrong answer.
            full = "no room in the context" if reply.stop == "context" and not reply.tokens else ""
            if fault := reply.fault or full:
                return Score(0.0, {}, invalid=f"the answer from the {name} alone: {fault}")
        replies = dict(self.probed) | {name: reply.text for name, reply in probes.items()}
        answers = {name: _stated(reply) for name, reply in replies.items()} | {"full": trajectory.answer}
        golds = golds_of(trajectory.question)
        rewards = [f1(answers.get(name), golds, self.rule) for name in self.outputs]
        parts = {
            "answer": math.fsum(rewards) / len(rewards),
            # Evidence that was never begun has no length, and must not pass for the shortest of all.
            "length": self.length(lengths(trajectory, engine)) if _field(trajectory, "evidence") else 0.0,
            "format": float(not trajectory.malformed),
        }
        weights = (self.answer_weight, self.length_weight, self.format_weight)
        total = math.fsum(w * part for w, part in zip(weights, parts.values(), strict=True))
        return Score(
            total, parts, details={f"answer_{n}": r for n, r in zip(self.outputs, rewards, strict=True)}
        )

    def length(self, size: Lengths) -> float:
        """R_len: the mean of the two length rewards."""
        return (rationale_length(size, self.tau) + evidence_length(size, self.gamma, self.omega)) / 2

    def _probe(self, asked: Sequence[tuple[Trajectory, str]], engine: Engine | None) -> list[Completion]:
        """The output of each (trajectory, output name), greedy, in one batch; a fault without an engine."""
        if engine is None:
            missing = "no engine to generate it, and probes.{} is missing"
            return [Completion((), (), "", (), "", missing.format(name)) for _, name in asked]
        requests = [self.request(trajectory, name, engine) for trajectory, name in asked]
        sampling = Sampling(self.probe_tokens, temperature=0.0, stop=("</answer>",))
        return engine.generate(requests, sampling) if requests else []

    def request(self, trajectory: Trajectory, name: str, engine: Engine) -> Request:
        """The masked context of o_r or o_e, prefilled from nothing (eq. 4).

        rationale: prompt with q and P, then <reason>r</reason><answer>; evidence: prompt with q and
        no passages, then <extract>e</extract><answer>. Everything inserted is neutralised.
        """
        question = neutralise(trajectory.question.text).strip()
        passages = _shown(trajectory) if name == "rationale" else ""
        prompt = Message("user", fill(self.instruction, question=question, passages=passages))
        tag = _BODIES[name]
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
    """L_r, L_e and L_P: policy tokens if the episode has them and the engine counts the passages, else words."""
    shown = _shown(trajectory)
    fields = [_field(trajectory, name) for name in _BODIES]
    if engine is None or any(not s.ends for _, s in trajectory.policy_segments() if s.text):
        rationale, evidence = (len(field.text.split()) if field else 0 for field in fields)
        return Lengths(rationale, evidence, len(shown.split()))
    rationale, evidence = (
        tokens_between(trajectory.segments[f.segment].ends, f.start, f.end) if f and f.text.strip() else 0
        for f in fields
    )
    return Lengths(rationale, evidence, len(engine.tokenizer.encode(shown)) if shown else 0)


def _shown(trajectory: Trajectory) -> str:
    """The passages as the episode shows them."""
    return passage_lines(map(neutral_passage, passages_shown(trajectory)))


def _field(trajectory: Trajectory, name: str) -> Field | None:
    """The last body of the tag, as for answers."""
    return next((f for f in reversed(trajectory.fields) if f.tag == _BODIES[name]), None)


def _written(trajectory: Trajectory, name: str) -> str:
    field = _field(trajectory, name)
    return field.text.strip() if field else ""


def _stated(reply: str) -> str:
    """The answer in a probe's output: the last <answer> of eq. 5, else the text before </answer> or the limit.

    The tag itself must not count as a word of the answer: "<answer> Paris </answer>" would have half the F1.
    """
    blocks = find_tags(reply, ("answer",))
    found = blocks[-1].body if blocks else reply.split("</answer>", 1)[0].strip().removeprefix("<answer>")
    return found.strip()


def _sigmoid(x: float) -> float:
    # Both forms, since e^-x overflows for a very negative x.
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
