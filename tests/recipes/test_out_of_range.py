"""Settings out of range are refused by every part of an experiment, in one line that names the setting."""

import math
from functools import partial
from typing import Any

import pytest

from sleuth.algorithms.grpo import GRPO
from sleuth.episodes.limits import Limits
from sleuth.errors import ConfigError
from sleuth.judges.llm import LLMJudge
from sleuth.protocols.arena import ArenaSections
from sleuth.protocols.eviomni import EviOmni
from sleuth.protocols.prompted.ircot import IRCoT
from sleuth.protocols.prompted.iter_retgen import IterRetGen
from sleuth.protocols.prompted.search_o1 import SearchO1
from sleuth.protocols.prompted.self_ask import EXAMPLES, SelfAsk
from sleuth.protocols.prompted.sure import SuRe
from sleuth.recipes.evo_rag.curriculum import PARTS, Curriculum
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.rewards.answer import AnswerOrEvidenceReward
from sleuth.rewards.arena import ArenaReward
from sleuth.rewards.evinote import EviNoteReward
from sleuth.rewards.eviomni import EviOmniReward

Sections, Extraction, Evidence = (
    partial(kind, instruction="") for kind in (ArenaSections, EviOmni, EviOmniReward)
)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (GRPO, {"group_size": 0}, "group_size"),
        (GRPO, {"num_updates": 0}, "num_updates"),
        (GRPO, {"epsilon": -0.1}, "epsilon"),
        (GRPO, {"beta": math.nan}, "beta"),
        (GRPO, {"kl": "k1"}, "kl must be one of k2, k3"),
        (GRPO, {"scale": "mean"}, "scale"),
        (GRPO, {"scale": "std_floor", "std_floor": 0.0}, "std_floor"),
        (GRPO, {"aggregation": "batch"}, "aggregation"),
        (DPO, {"group_size": 1}, "dpo.group_size"),
        (DPO, {"beta": 0.0}, "dpo.beta"),
        (DPO, {"beta": math.nan}, "dpo.beta"),
        (DPO, {"margin": -0.1}, "dpo.margin"),
        (DPO, {"model_margin": math.inf}, "dpo.model_margin"),
        (DPO, {"preference": "judge"}, "dpo.preference"),
        (DPO, {"update_pairs": 0}, "dpo.update_pairs"),
        *((Curriculum, {part: (1.0, 2.0)}, rf"{part} must be tuple of length 3, not") for part in PARTS),
        *((Curriculum, {part: (1.0, -1.0, 0.0)}, rf"{part}\[1\] must be at least 0, not") for part in PARTS),
        (Curriculum, {"step": (0.0, math.inf, 0.0)}, r"curriculum\.step must be finite"),
        (Curriculum, {"schedule": "dynamic"}, "time-dynamic"),
        (Curriculum, {"stage": 3}, "stage must be at most 2"),
        (Curriculum, {"max_steps": 0}, "max_steps"),
        (EvoRAGReward, {"parts": ("backtracks",)}, r"parts\[0\] must be one of .*backtrack"),
        (EvoRAGReward, {"parts": ()}, "parts must be tuple of length >= 1"),
        (EvoRAGReward, {"rule": "hotpotq"}, "hotpotqa"),
        (EvoRAGReward, {"judge": "gpt"}, "yes or no"),
        (AnswerOrEvidenceReward, {"measure": "bleu"}, "measure must be one of em, f1, not 'bleu'"),
        (AnswerOrEvidenceReward, {"rule": "hotpotq"}, "hotpotqa"),
        (AnswerOrEvidenceReward, {"containment": "words"}, "containment must be one of tokens, characters"),
        (ArenaReward, {"measure": "bleu"}, "measure must be one of em, f1, judge, not 'bleu'"),
        (ArenaReward, {"measure": "judge"}, "need each other"),
        (ArenaReward, {"judge": LLMJudge("m")}, "need each other"),
        (ArenaReward, {"rule": "arenna"}, "arena"),
        (ArenaReward, {"relevance_measure": "set"}, "relevance_measure must be one of paper, f1, not 'set'"),
        *((EviNoteReward, {name: "x"}, f"{name} must be") for name in ("eqr", "gate", "marks", "golds")),
        (EviNoteReward, {"stochastic": 1.5}, "stochastic must be at most 1"),
        (EviNoteReward, {"claim": "no gold"}, "claim"),
        (Evidence, {"outputs": ()}, "outputs"),
        (Evidence, {"outputs": ("full", "full")}, "outputs must differ"),
        (Evidence, {"outputs": ("answer",)}, "outputs"),
        (Evidence, {"tau": 0}, "tau"),
        (Evidence, {"gamma": -1}, "gamma"),
        (Evidence, {"omega": 1.1}, "omega"),
        (Evidence, {"probe_tokens": 0}, "probe_tokens"),
        (Evidence, {"length_weight": math.nan}, "length_weight"),
        *(
            (Sections, {"sections": s}, "sections must differ and end")
            for s in ((), ("analysis",), ("answer", "relevance"))
        ),
        (Sections, {"sections": ("answer", "answer")}, "sections must differ and end"),
        *(
            (Extraction, {"sections": s}, "must be some of")
            for s in (("answer", "reason"), ("think",), ("answer",) * 2)
        ),
        (Extraction, {"sections": ("reason",)}, "must be some of"),
        (IRCoT, {"max_sentences": 0}, "max_sentences must be at least 1, not 0"),
        (IRCoT, {"max_passages": 0}, "max_passages must be at least 1, not 0"),
        (IterRetGen, {"rounds": 0}, "rounds must be at least 1, not 0"),
        (SearchO1, {"max_searches": -1}, "max_searches must be at least 0, not -1"),
        (SelfAsk, {"shots": -1}, "shots"),
        (SelfAsk, {"shots": len(EXAMPLES) + 1}, "shots"),
        (SuRe, {"candidates": 0}, "candidates"),
        (SuRe, {"candidates": 27}, "candidates"),
        (Limits, {"max_steps": 0}, "max_steps"),
        (Limits, {"top_k": 0}, "top_k"),
        (Limits, {"max_new_tokens": 5000}, "no room for a prompt"),
        (Limits, {"max_context": -1}, "max_context"),
    ],
)
def test_one_line_names_the_setting(kind: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**settings)
