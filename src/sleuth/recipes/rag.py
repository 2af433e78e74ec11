"""Plain RAG: retrieve once, answer from the passages. The baseline that costs nothing to train.

It can be trained too (exact match, GRPO), which separates what search turns add from what
training on the data adds.
"""

from sleuth.protocols.plain_rag import PlainRAG
from sleuth.recipes import search_r1

PAPER = search_r1.PAPER.but(
    name="rag/paper",
    protocol=PlainRAG(),
    source="naive RAG as in Search-R1 (Jin et al. 2025), Table 2: top-3, one retrieval",
).sized(max_steps=1, max_new_tokens=64)  # the length is ours

CPU = search_r1.CPU.but(name="rag/cpu", protocol=PAPER.protocol, source=PAPER.source).sized(
    max_steps=1, max_new_tokens=32
)

RECIPES = {"paper": PAPER, "cpu": CPU}
