"""Answer scores under each data set's official rules: exact match, token F1, cover exact match.

Invariants: every value is in [0, 1]; the best gold counts, for each score on its own; a missing
prediction (None) is wrong whatever the golds are; a question without golds is unanswerable and
is scored as in SQuAD 2.0, whose gold is then the empty string. Text rules live in sleuth.text.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sleuth.errors import ConfigError
from sleuth.registry import nearest
from sleuth.text import Normaliser, normalise
from sleuth.types import Question, Trajectory

_CLOSED_ANSWERS = ("yes", "no", "noanswer")


@dataclass(frozen=True, slots=True)
class Rules:
    """How one data set compares a prediction with its golds."""

    name: str
    normaliser: Normaliser
    source: str  # The official script; where there is none, the origin of these rules.
    empty_f1: Literal["zero", "equal"] = "zero"
    """F1 when prediction or gold has no tokens: always 0 (SQuAD v1.1), or 1 if neither has any (v2.0)."""
    yes_no: bool = False  # F1 is 0 if either side is yes, no or noanswer and they differ (HotpotQA).
    golds: Literal["one", "many"] = "many"
    """Number in the official files; if more are given, all are accepted and the best counts."""
    drop_empty_golds: bool = False
    """Golds that normalise to nothing are left out; if none is left the gold is "" (SQuAD 2.0)."""
    unanswerable: Literal["none", "scored", "left out"] = "none"
    """Questions without golds: not in the data, scored against "", or outside the answer scores (MuSiQue)."""


_OURS = "no official script in use; SQuAD v1.1"
_BOTH = "SQuAD v1.1, SQuAD 2.0 where unanswerable"
_TABLE = (
    Rules("squad", "squad", "SQuAD evaluate-v1.1.py"),
    Rules("squad2", "squad", "SQuAD evaluate-v2.0.py", "equal", drop_empty_golds=True, unanswerable="scored"),
    Rules("hotpotqa", "squad", "HotpotQA hotpot_evaluate_v1.py", yes_no=True, golds="one"),
    Rules("2wiki", "squad", "2WikiMultiHopQA 2wikimultihop_evaluate_v1.1.py", yes_no=True),
    Rules("musique", "squad", "MuSiQue evaluate_v1.0.py", "equal", unanswerable="left out"),
    Rules("nq", "nq", "NQ-open, ORQA eval_utils.py for EM; no official F1, SQuAD v1.1's is used"),
    Rules("triviaqa", "triviaqa", "TriviaQA triviaqa_evaluation.py"),
    Rules("popqa", "squad", f"{_OURS} (the paper's own score is substring accuracy)"),
    Rules(
        "arena", "arena", "ARENA, appendix C.1 and C.2, and its released scorer: punctuation becomes a space"
    ),
    Rules("bamboogle", "squad", _OURS),
    Rules("factbook", "squad", f"Sleuth's own data; {_BOTH}", unanswerable="scored"),
    Rules("default", "squad", f"no data set named; {_BOTH}", unanswerable="scored"),
)
RULES: dict[str, Rules] = {rules.name: rules for rules in _TABLE}

_ALIASES = {
    **dict.fromkeys(("", "jsonl"), "default"),
    **dict.fromkeys(("twowiki", "2wikimultihop", "2wikimultihopqa"), "2wiki"),
    **dict.fromkeys(("nqopen", "naturalquestions"), "nq"),
    "squad1": "squad",
    "squadv2": "squad2",
    "hotpot": "hotpotqa",
}


def rules_for(dataset: str) -> Rules:
    """The rules of a data set; case, "-" and "_" do not matter. Raises ConfigError with the nearest name."""
    name = dataset.strip().lower().replace("-", "").replace("_", "")
    rules = RULES.get(_ALIASES.get(name, name))
    if rules is None:
        raise ConfigError(f"no scoring rules for data set {dataset!r}{nearest(dataset, RULES)}")
    return rules


def rules_of(dataset: str) -> Rules:
    """The data set's rules; the default ones, under that name, for a data set of the user's own."""
    try:
        return rules_for(dataset)
    except ConfigError:
        return RULES["default"]


@dataclass(frozen=True, slots=True)
class Match:
    """Agreement of a prediction with its gold: an answer, a set of facts, or several of these jointly."""

    em: float  # 1.0 if they are equal, else 0.0.
    f1: float
    precision: float
    recall: float


WRONG = Match(0.0, 0.0, 0.0, 0.0)  # The score of a missing prediction.
EXACT = Match(1.0, 1.0, 1.0, 1.0)


def _rules(rule: Rules | str) -> Rules:
    return rule if isinstance(rule, Rules) else rules_for(rule)


def _accepted(golds: Sequence[str], rules: Rules) -> list[str]:
    accepted = [normalise(gold, rules.normaliser) for gold in golds]
    if rules.drop_empty_golds:
        accepted = [gold for gold in accepted if gold]
    return accepted or [""]


def exact_match(prediction: str | None, golds: Sequence[str], rule: Rules | str) -> float:
    """1.0 if the normalised prediction equals a normalised gold, else 0.0. Raises ConfigError for unknown rules."""
    return answer_match(prediction, golds, rule).em


def f1(prediction: str | None, golds: Sequence[str], rule: Rules | str) -> float:
    """Largest F1 of the token multisets over golds, in [0, 1].

    An unanswerable question (no golds, or nothing but "" in a data set that has such questions)
    follows SQuAD 2.0, 1 for an empty prediction: v1.1, which gives 0 there, never had one.
    """
    return answer_match(prediction, golds, rule).f1


def answer_match(prediction: str | None, golds: Sequence[str], rule: Rules | str) -> Match:
    """EM, F1, precision and recall of the token multisets, each the best over golds on its own."""
    rules = _rules(rule)
    if prediction is None:
        return WRONG
    normalised, wanted = normalise(prediction, rules.normaliser), _accepted(golds, rules)
    em = float(normalised in wanted)
    if not golds or (rules.unanswerable == "scored" and not any(map(str.strip, golds))):
        return EXACT if em else WRONG
    pairs = [_tokens_match(normalised, gold, rules) for gold in wanted]
    return Match(em, *map(max, zip(*pairs, strict=True)))


def _tokens_match(prediction: str, gold: str, rules: Rules) -> tuple[float, float, float]:
    """F1, precision and recall of one gold, both normalised."""
    if rules.yes_no and prediction != gold and (prediction in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS):
        return 0.0, 0.0, 0.0
    predicted, wanted = prediction.split(), gold.split()
    if not predicted or not wanted:
        equal = float(rules.empty_f1 == "equal" and predicted == wanted)
        return equal, equal, equal
    common = sum((Counter(predicted) & Counter(wanted)).values())
    # 2PR/(P+R) with P = common/|predicted| and R = common/|wanted|, with a single rounding.
    return 2 * common / (len(predicted) + len(wanted)), common / len(predicted), common / len(wanted)


def cover_exact_match(prediction: str | None, golds: Sequence[str], rule: Rules | str) -> float:
    """1.0 if a gold occurs in the prediction as a run of whole tokens; unanswerable: exact match."""
    return _cover(prediction, golds, rule, " ")


def cover_exact_match_characters(prediction: str | None, golds: Sequence[str], rule: Rules | str) -> float:
    """The papers' "cover-EM" or "acc": a gold as a substring, so that "9" is in "19 May 1990"."""
    return _cover(prediction, golds, rule, "")


def _cover(prediction: str | None, golds: Sequence[str], rule: Rules | str, edge: str) -> float:
    rules = _rules(rule)
    if prediction is None:
        return 0.0
    text = edge + normalise(prediction, rules.normaliser) + edge
    accepted = _accepted(golds, rules)
    # An empty gold is a substring of everything; it may only be met exactly.
    return float(any(edge + gold + edge in text if gold else not text.strip() for gold in accepted))


def golds_of(question: Question) -> tuple[str, ...]:
    """The answers to score against: none if unanswerable, whatever answer its file still lists (MuSiQue-Full)."""
    return question.answers if question.answerable else ()


def prediction_of(trajectory: Trajectory) -> str | None:
    """The scored text of an episode: its last answer, "" if it refused, None if it ended without either.

    An episode that failed from outside has no prediction, so it counts as wrong.
    """
    if trajectory.fault:
        return None
    return "" if trajectory.ending == "refused" else trajectory.answer
