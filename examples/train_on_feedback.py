"""DPO on people's verdicts: the right answer to a question becomes more likely than the ones that were rejected.

    sleuth feedback served -o judged.jsonl
    sleuth train examples/train_on_feedback.py --index idx --set scale.model=runs/mine/model \
        --set scale.train_data=jsonl:judged.jsonl --set scale.eval_data=jsonl:dev.jsonl

Both sides of a pair are episodes that the protocol's script writes, over the passages that the index gives.
"""

from sleuth.algorithms.pairwise import AnswerDPO
from sleuth.recipes import load_recipe

RECIPE = (
    load_recipe("rag/cpu")
    .but(name="feedback/cpu", algorithm=AnswerDPO())
    .sized(warm_start_examples=0, steps=20, batch=8, lr=1e-6, lr_warmup=0.0, temperature=1.0)
)
