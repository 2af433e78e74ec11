"""How sure a model was of its answer: the mean log-probability of the answer's own tokens.

The tokens are those of the last answer or refusal, as the engine recorded them; thoughts and tags do not count.
"""

from __future__ import annotations

import math

from sleuth.types import Action, Segment, Trajectory


def confidence(trajectory: Trajectory) -> float | None:
    """Nats per token, at most 0, higher is surer; None without an answer or without log-probabilities."""
    action = next((a for a in reversed(trajectory.actions) if a.kind in ("answer", "refuse")), None)
    if action is None or trajectory.fault:
        return None
    segment = trajectory.segments[action.segment]
    start, end = _span(trajectory, action, segment)
    begins = (0, *segment.ends[:-1])
    spans = zip(segment.logprobs, begins, segment.ends, strict=False)
    chosen = [logprob for logprob, begin, stop in spans if begin < end and stop > start]
    # Without the tokens' places, or for an empty answer, the whole turn has to stand for it.
    logprobs = chosen or list(segment.logprobs)
    mean = math.fsum(logprobs) / len(logprobs) if logprobs else None
    return mean if mean is not None and math.isfinite(mean) else None


def _span(trajectory: Trajectory, action: Action, segment: Segment) -> tuple[int, int]:
    """Where the answer stands in its turn, in characters: its tag's body, else its last mention."""
    for field in reversed(trajectory.fields):
        if field.segment == action.segment and field.tag == action.kind:
            return field.start, field.end
    start = segment.text.rfind(action.text) if action.text else -1
    return (start, start + len(action.text)) if start >= 0 else (0, 0)
