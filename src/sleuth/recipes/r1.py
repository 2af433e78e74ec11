"""R1 without retrieval: Search-R1 with everything about searching left out (Search-R1, §4.1).

What it scores above a prompted model is what reasoning learns; what Search-R1 scores above it, what searching adds.
"""

from sleuth.protocols.direct import ThinkThenAnswer
from sleuth.recipes import search_r1
from sleuth.retrievers.none import NoRetriever

INSTRUCTION = (
    "Answer the given question. First reason inside <think> and </think>. Then give the answer inside <answer> and "
    "</answer>, in a few words. Question: {question}"
)
PAPER = search_r1.PAPER.but(
    name="r1/paper",
    protocol=ThinkThenAnswer(instruction=INSTRUCTION),
    retriever=NoRetriever(),
    source="R1 (DeepSeek-AI 2025) as in Search-R1 (Jin et al. 2025), Table 2",
).sized(max_steps=1)
CPU = search_r1.CPU.but(
    name="r1/cpu",
    protocol=ThinkThenAnswer(
        instruction="Answer the question. Think in <think></think>. Give the final answer in <answer></answer>."
    ),
    retriever=NoRetriever(),
    source=PAPER.source,
).sized(max_steps=1)
RECIPES = {"paper": PAPER, "cpu": CPU}
