"""EviNote-RAG: after every search, take a marked note; the last note must entail the answer.

Dai et al., "EviNote-RAG", eqs. 4-8, §4.4. Prompts are ours, since the paper prints none. The variant of
the released code and the ablations: evinote_variants.
"""

from dataclasses import replace

from sleuth.judges.lexical import LexicalJudge
from sleuth.judges.nli import NLIJudge
from sleuth.protocols.demonstration import Script
from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes import search_r1
from sleuth.rewards.evinote import EviNoteReward

_SEARCH = (
    "Answer the given question. Reason inside <think> and </think> first. If you lack some knowledge, search with "
    "<search> query </search>; the results come between <information> and </information>. "
)
_ANSWER = (
    "You can search several times. When the evidence is enough, give a short final answer between <answer> and "
    "</answer>. Question: {question}"
)
_NOTES = (
    "After each result, take notes between <summary> and </summary>: keep only what helps to answer, one point a "
    'line, begin a line of key information with "* " and one of uncertain information with "- ", and say so if '
    "nothing useful was found. "
)

# Wording of demonstrations: both marks in every note, each on a line of its own. No negation, for which the lexical
# judge would halve every complete note.
SCRIPT = Script(
    found="* Doc {number}: {quote}", missing="\n- Still missing: {need}.", enough="\n- All of it is certain."
)


def protocol(notes: str, note: str = "summary") -> SearchTags:
    """The paper-scale protocol with another request for notes."""
    return SearchTags(
        instruction=_SEARCH + notes + _ANSWER,
        note=note,
        think_before_note=True,  # ours: the paper's schema does not order thought and note after a result
        invalid_message=search_r1.INVALID,
        script=SCRIPT,
    )


# §4.4 names a DistilBERT of 144 M parameters and no checkpoint; this is a public one of that family.
JUDGE = NLIJudge("typeform/distilbert-base-uncased-mnli")

PAPER = search_r1.PAPER.but(
    name="evinote-rag/paper",
    protocol=protocol(_NOTES),
    reward=EviNoteReward(judge=JUDGE, partial=0.1),  # eq. 5
    # G: §4.4; k3: "unbiased estimator", §3.3; β and ε: released scripts, the same as Search-R1's.
    algorithm=replace(search_r1.ALGORITHM, group_size=4),
    source="EviNote-RAG (Dai et al.), eqs. 4-8, section 4.4, appendices A-C",
).sized(
    model="Qwen/Qwen2.5-7B-Instruct",  # §4.4
    top_k=3,  # released scripts
    max_steps=6,  # at most 5 searches (§4.4), then the answer
    max_new_tokens=1024,  # released scripts
    max_passage_tokens=8192,  # released scripts
    max_context=16384,  # released scripts
    temperature=1.0,  # §4.4
    steps=282,  # one pass over NQ and HotpotQA; the released runs take one epoch
    batch=600,  # §4.4
    lr=1e-5,  # §4.4
    lr_warmup=0.0,  # the paper gives none
)

# The lexical judge, since on attribution it beats the small judge that can be trained on two cores
# (docs/methods/judges.md); "--set reward.judge=small" uses that one.
CPU = search_r1.CPU.but(
    name="evinote-rag/cpu",
    protocol=search_r1.short_protocol(
        " After each result take notes in <summary></summary>: lines that begin with * for key facts, with - for "
        "what is uncertain or missing.",
        note="summary",
        think_before_note=True,
        script=SCRIPT,
    ),
    reward=EviNoteReward(judge=LexicalJudge()),
    # Notes grow in training: with 112 tokens every invalid episode had a turn cut (docs/runs.md).
    scale=replace(search_r1.CPU.scale, max_new_tokens=160),
    source=PAPER.source,
)
