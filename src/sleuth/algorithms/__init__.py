"""Scores → per-token credit, and its loss."""

ALGORITHMS = {
    "dpo": "sleuth.algorithms.dpo:DPO",
    "grpo": "sleuth.algorithms.grpo:GRPO",
    "sft": "sleuth.algorithms.sft:SFT",
}
"""Name → class, for recipes saved as JSON."""
