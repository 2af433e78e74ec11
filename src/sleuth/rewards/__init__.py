"""Trajectory → score."""

REWARDS = {
    "answer": "sleuth.rewards.answer:AnswerReward",
    "answer-or-evidence": "sleuth.rewards.answer:AnswerOrEvidenceReward",
}
"""Name → class, for recipes saved as JSON."""
