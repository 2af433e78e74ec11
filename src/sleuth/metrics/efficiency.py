"""Costs of an episode: repeated searches and tokens; and whether it kept its format.

Pure functions of a trajectory; None where the figure does not exist.
"""

from sleuth.text import normalise
from sleuth.types import Trajectory


def duplicate_searches(trajectory: Trajectory) -> float:
    """Searches whose normalised query was already asked in this episode."""
    queries = [normalise(action.text) for action in trajectory.actions if action.kind == "search"]
    return float(len(queries) - len(set(queries)))


def query_words(trajectory: Trajectory) -> float | None:
    """Mean number of words in a search; None without a search."""
    lengths = [len(action.text.split()) for action in trajectory.actions if action.kind == "search"]
    return sum(lengths) / len(lengths) if lengths else None


def response_tokens(trajectory: Trajectory) -> float | None:
    """Tokens the model wrote; None for a transcript without token ids."""
    if any(segment.text and not segment.tokens for _, segment in trajectory.policy_segments()):
        return None
    return float(trajectory.response_length)


def valid_format(trajectory: Trajectory) -> float:
    """1.0 if the episode ended with an answer or refusal and kept its protocol's grammar; 0.0 after a fault."""
    ended = trajectory.ending in ("answered", "refused")
    return float(ended and not trajectory.malformed and not trajectory.fault)
