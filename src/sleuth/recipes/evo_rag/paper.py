"""EVO-RAG: search, backtrack, answer or refuse, learnt from step rewards under a curriculum.

Ji et al., "Curriculum-Guided Reinforcement Learning for Efficient Multi-Hop Retrieval-Augmented
Generation". Step rewards §3.2, preference model §3.3, DPO §3.4, curriculum §3.5 and §3.6; the
ablations and the CPU scale are in variants. Settings that the paper leaves open are marked "ours".
"""

from sleuth.encoders.minilm import MiniLM
from sleuth.recipe import Recipe
from sleuth.recipes.evo_rag.curriculum import Curriculum
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.recipes.evo_rag.protocol import EvoRAG
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.retrievers.given import GivenParagraphs
from sleuth.scale import Scale

# Ours: the paper prints no prompt.
INSTRUCTION = (
    "Answer the question by searching step by step. In every turn first think in <think></think>, then take exactly "
    "one action. <search>query</search> looks for documents, which you will see between <information> and "
    "</information>. <backtrack/> takes the last search and its documents back. <answer>…</answer> gives the final "
    "answer, as short as possible. <refuse>reason</refuse> ends without an answer if the evidence is not enough. "
    "Question: {question}"
)
PROTOCOL = EvoRAG(
    INSTRUCTION,
    invalid_message="\nThat is not exactly one action that can be carried out. Let me try again.\n",  # ours
)

CURRICULUM = Curriculum("time-dynamic", max_steps=20)  # T_max = 20, §3.6; weights: Table 1
REWARD = EvoRAGReward(
    CURRICULUM,
    encoder=MiniLM(),  # §3.2
    judge=None,  # the paper asks ChatGPT-4o; offline the gold documents decide
    rule="hotpotqa",
)

ALGORITHM = DPO(
    group_size=4,  # ours; §3.4 says N
    beta=0.1,  # §3.4
    margin=0.2,  # δ, §3.4
    model_margin=0.3,  # Δ, §3.3
    update_pairs=64,  # effective batch, §3.4
)

PAPER = Recipe(
    name="evo-rag/paper",
    protocol=PROTOCOL,
    # BM25 over each question's paragraphs, which hold the gold documents of r_ret. §4.1 fuses BM25 and BGE
    # over a corpus it does not name: evo-rag/rrf, for an index whose ids are those of the gold documents.
    retriever=GivenParagraphs(),
    reward=REWARD,
    algorithm=ALGORITHM,
    scale=Scale(
        model="Qwen/Qwen3-8B",  # the best of three, Table 3
        train_data="hub:hotpotqa/hotpot_qa/distractor:train@hotpotqa",
        eval_data="hub:hotpotqa/hotpot_qa/distractor:validation@hotpotqa",
        top_k=3,  # ours
        max_steps=20,  # T_max
        max_new_tokens=256,  # ours
        max_passage_tokens=500,  # ours
        max_context=16384,  # ours
        temperature=1.0,  # ours
        steps=10,  # most cycles of a stage; ours: the stop rule ends it
        batch=1000,  # all questions in every cycle: one epoch
        lora_rank=16,  # §3.4 says LoRA; the rank is ours
        lr=5e-6,  # §3.4
        gradient_checkpointing=True,  # ours: memory only
        save_every=1,
        train_questions=1000,  # §4.1
        dev_questions=100,  # ours: drawn from the training questions
        dev_every=1,
        patience=2,  # §3.4
    ),
    source="EVO-RAG (Ji et al.), §3, Table 1, Algorithm 1",
)
