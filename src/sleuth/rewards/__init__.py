"""Trajectory → score."""

REWARDS = {
    "answer": "sleuth.rewards.answer:AnswerReward",
    "answer-or-evidence": "sleuth.rewards.answer:AnswerOrEvidenceReward",
    "arena": "sleuth.rewards.arena:ArenaReward",
    "eviomni": "sleuth.rewards.eviomni:EviOmniReward",
    "evinote": "sleuth.rewards.evinote:EviNoteReward",
    "evo-rag": "sleuth.recipes.evo_rag.reward:EvoRAGReward",
    "format-and-accuracy": "sleuth.rewards.arena:FormatAndAccuracyReward",
}
"""Name → class, for recipes saved as JSON."""
