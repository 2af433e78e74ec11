"""Algorithms: scores → per-token credit, and the loss that uses it."""

ALGORITHMS = {
    "answer-dpo": "sleuth.algorithms.pairwise:AnswerDPO",
    "dpo": "sleuth.recipes.evo_rag.dpo:DPO",
    "grpo": "sleuth.algorithms.grpo:GRPO",
    "rejection-sampling": "sleuth.algorithms.rejection:RejectionSampling",
    "sft": "sleuth.algorithms.sft:SFT",
}
"""Name → class, for recipes saved as JSON."""
