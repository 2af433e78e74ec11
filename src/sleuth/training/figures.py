"""Figures of a batch of rollouts, chosen to show a collapse before the reward does."""

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev

from sleuth.metrics.answers import exact_match, golds_of, prediction_of, rules_of
from sleuth.metrics.efficiency import duplicate_searches
from sleuth.types import Trajectory

Groups = Sequence[Sequence[Trajectory]]


def is_trainable(trajectory: Trajectory) -> bool:
    """Whether it was scored and nothing outside the policy failed."""
    return not trajectory.fault and trajectory.score is not None and not trajectory.score.invalid


def is_right(trajectory: Trajectory) -> bool:
    """Whether the answer matches an accepted one exactly, by its data set's rules."""
    question = trajectory.question
    golds, rules = golds_of(question), rules_of(question.dataset)
    return exact_match(prediction_of(trajectory), golds, rules) == 1.0


def is_live(group: Sequence[Trajectory]) -> bool:
    """Whether the rewards of a group differ, so that it has advantages."""
    return len({t.score.total for t in group if is_trainable(t) and t.score}) > 1


def distinct(groups: Groups) -> list[Trajectory]:
    """All episodes of the groups, each once."""
    return list({id(t): t for group in groups for t in group}.values())


def whole_episodes(groups: Groups) -> list[Trajectory]:
    """Distinct episodes that were played from their beginning, which leaves out siblings' forks."""
    return [t for t in distinct(groups) if t.fork < 0]


def rollout_figures(groups: Groups) -> dict[str, float]:
    """rollouts/…: shares and means over the episodes that did not fault.

    right is the share of right answers to the questions that have one, whatever the reward is; valid_format and
    truncated are shares too; response_length counts policy tokens, sequence_length all of an
    episode's, state_tokens the policy's over the whole batch (the tokens that are trained on); actions counts
    invalid ones too. query_words are the words of a search, words/TAG those of each kind of section in an
    episode. faults and invalid are numbers of episodes that were left out.
    """
    everything = whole_episodes(groups)
    sound = [t for t in everything if not t.fault]
    figures = {
        "rollouts/episodes": float(len(everything)),
        "rollouts/faults": float(len(everything) - len(sound)),
        "rollouts/invalid": float(sum(not is_trainable(t) for t in sound)),
    }
    if sound:
        lengths = [t.response_length for t in sound]
        figures |= {
            "rollouts/valid_format": fmean(not t.malformed for t in sound),
            "rollouts/answered": fmean(t.ending == "answered" for t in sound),
            "rollouts/refused": fmean(t.ending == "refused" for t in sound),
            "rollouts/truncated": fmean(_is_truncated(t) for t in sound),
            "rollouts/searches": fmean(t.searches for t in sound),
            "rollouts/repeated": fmean(duplicate_searches(t) for t in sound),
            "rollouts/actions": fmean(len(t.actions) for t in sound),
            "rollouts/invalid_actions": fmean(sum(a.kind == "invalid" for a in t.actions) for t in sound),
            "rollouts/turns": fmean(sum(1 for _ in t.policy_segments()) for t in sound),
            "rollouts/response_length": fmean(lengths),
            "rollouts/longest_response": float(max(lengths)),
            "rollouts/sequence_length": fmean(len(t.tokens) for t in sound),
            "rollouts/state_tokens": float(sum(lengths)),
        }
        if known := [t for t in sound if golds_of(t.question)]:
            figures["rollouts/right"] = fmean(is_right(t) for t in known)
        queries = [len(a.text.split()) for t in sound for a in t.actions if a.kind == "search"]
        if queries:
            figures["rollouts/query_words"] = fmean(queries)
        for tag in sorted({field.tag for t in sound for field in t.fields}):
            words = (sum(len(body.split()) for body in t.bodies(tag)) for t in sound)
            figures[f"rollouts/words/{tag}"] = fmean(words)
    return figures


def reward_figures(groups: Groups) -> dict[str, float]:
    """reward/…: mean of the total, each part and each detail over trainable episodes, with its standard error.

    The error (…_se) is over questions, since the episodes of one question resemble each other; NaN for a
    single question. zero_variance is the share of groups whose rewards are all equal and which thus have no advantage.
    """
    kept = [[t for t in group if is_trainable(t)] for group in groups]
    rows: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for trajectory in whole_episodes(kept):
        if score := trajectory.score:
            for name, value in {**score.parts, **score.details, "total": score.total}.items():
                rows[name].append((trajectory.question.id, value))
    if not rows:
        return {}
    figures: dict[str, float] = {}
    for name, column in rows.items():
        finite = [(key, value) for key, value in column if math.isfinite(value)]
        figures[f"reward/{name}"] = fmean(value for _, value in finite) if finite else math.nan
        figures[f"reward/{name}_se"] = _standard_error(finite)
    equal = [len({t.score.total for t in group if t.score}) == 1 for group in kept if group]
    return figures | {"reward/zero_variance": fmean(equal)}


def _standard_error(values: Sequence[tuple[str, float]]) -> float:
    """Standard error of the mean of (question, value) pairs, the questions being the sample."""
    by_question: dict[str, list[float]] = defaultdict(list)
    for question, value in values:
        by_question[question].append(value)
    means = [fmean(own) for own in by_question.values()]
    return stdev(means) / math.sqrt(len(means)) if len(means) > 1 else math.nan


def _is_truncated(trajectory: Trajectory) -> bool:
    """Whether a turn ran into the token limit or out of context."""
    return any(segment.stop in ("length", "context") for _, segment in trajectory.policy_segments())
