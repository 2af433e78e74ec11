"""Guards: signs that a run is collapsing, so that it stops before its weights are lost.

Under a learning rate that is too high a policy drifts from where it began and its entropy explodes.
Its turns reach the length limit or repeat and its format breaks, often before the reward falls.
A policy that learns to please a flawed reward shows it where right answers fall and the reward does not.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

WINDOW = 3
"""Steps that are averaged, so that one unlucky batch stops nothing."""
KL = 1.0
"""Largest mean of log π − log π of the policy before the first step, in nats a sampled token."""
ENTROPY = 3.0
"""Largest entropy, as a multiple of that of the first steps, which counts as at least 0.1 nats."""
FORMAT = 0.25
"""Largest fall of the share of valid episodes below that of the first steps."""
RIGHT = 0.25
"""Largest fall of the share of right answers below that of the first steps, while the reward is as high as then."""
TRUNCATED = 0.4
"""Largest rise of the share of episodes with a turn that reached a length limit."""
REPEATED = 0.5
"""Largest rise of the number of searches an episode that repeat an earlier one of it."""

Rows = Sequence[Mapping[str, float]]


def fault(rows: Rows) -> str:
    """Why a run with these rows, oldest first, should stop; "" if it is sound or too short to judge."""
    if len(rows) < 2 * WINDOW:
        return ""
    now = rows[-WINDOW:]
    risen = {
        "update/kl_start": KL,
        "update/entropy": ENTROPY * max(0.1, _start(rows, "update/entropy")),
        "rollouts/truncated": _start(rows, "rollouts/truncated") + TRUNCATED,
        "rollouts/repeated": _start(rows, "rollouts/repeated") + REPEATED,
    }
    for name, limit in risen.items():
        if (value := _mean(now, name)) > limit:
            return f"{name} is {value:.2f} over {WINDOW} steps, above {limit:.2f}"
    least = _start(rows, "rollouts/valid_format") - FORMAT
    if (value := _mean(now, "rollouts/valid_format")) < least:
        return f"rollouts/valid_format is {value:.2f} over {WINDOW} steps, below {least:.2f}"
    known = [row for row in rows if "rollouts/right" in row]  # a step of unanswerable questions has none
    least, right = _start(known, "rollouts/right") - RIGHT, _mean(known[-WINDOW:], "rollouts/right")
    if right >= least or _mean(now, "reward/total") < _start(rows, "reward/total"):
        return ""
    return (
        f"rollouts/right is {right:.2f} over {WINDOW} steps, below {least:.2f}, at as high a reward as before"
    )


def quality(rows: Rows) -> float:
    """Mean share of right answers over steps, by which a run that collapsed chooses the weights it goes back to.

    A policy that pleases a flawed reward has the highest rewards where it answers worst. Where no question
    has an answer, the mean reward.
    """
    has_answers = any("rollouts/right" in row for row in rows)
    return _mean(rows, "rollouts/right" if has_answers else "reward/total")


def _start(rows: Rows, name: str) -> float:
    """Mean of the first steps that have a value: a step without an update has no entropy."""
    return _mean([row for row in rows if row.get(name) is not None][:WINDOW], name)


def _mean(rows: Rows, name: str) -> float:
    """Mean over the rows that have a value; 0 without any."""
    return fmean([value for row in rows if (value := row.get(name)) is not None] or [0.0])
