"""A method of your own in one file: notes in <refine>, F1 as the reward, a bonus for notes that hold the answer.

    sleuth train examples/own_recipe.py -o runs/own
    sleuth reward examples/own_recipe.py --input transcripts.jsonl

The shape is AutoRefine's (Shi et al. 2025); the wording and the CPU scale are ours.
"""

from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes import load_recipe
from sleuth.rewards.answer import AnswerOrEvidenceReward

RECIPE = load_recipe("search-r1/cpu").but(
    name="own/cpu",
    protocol=SearchTags(
        instruction=(
            "Answer the question. Think in <think></think>. Search with <search>query</search>; results come in "
            "<information></information>. After each result write what matters of it in <refine></refine>. "
            "Give the final answer in <answer></answer>."
        ),
        note="refine",
        invalid_message="\nI must search or answer.\n",
    ),
    reward=AnswerOrEvidenceReward(measure="f1", tag="refine", part="refinement", bonus=0.1),
)
