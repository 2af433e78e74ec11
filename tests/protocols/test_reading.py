"""The action that each grammar reads in a turn of the model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.episodes.protocol import AgentProtocol
from sleuth.protocols.arena import ArenaSections
from sleuth.protocols.eviomni import EviOmni
from sleuth.protocols.prompted.search_o1 import SearchO1
from sleuth.protocols.prompted.self_ask import SelfAsk
from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes.evo_rag.protocol import BACKTRACK, EvoRAG

TAGS, EVO, O1, SELF_ASK, ARENA = SearchTags(""), EvoRAG(""), SearchO1(), SelfAsk(), ArenaSections("")
EVIOMNI, EXTRACTOR, READER = (
    EviOmni(""),
    EviOmni("", sections=("reason", "extract")),
    EviOmni("", sections=()),
)
NEITHER, NONE, MANY = "neither <search> nor <answer>", "no actions in one turn", "2 actions in one turn"
NO_BOX, NO_ANSWER = "neither a search nor a boxed answer", "neither a follow up question nor a final answer"
SEARCH, ANSWER = "<think>t</think><search>dogs</search>", "<think>t</think><answer>x</answer>"


def query(text: str) -> str:
    return f"I need it. <|begin_search_query|>{text}<|end_search_query|>"


@pytest.mark.parametrize(
    ("protocol", "text", "kind", "body"),
    [
        (TAGS, "<search> q </search>", "search", "q"),
        (TAGS, "<think>t</think><answer>a</answer>", "answer", "a"),
        (TAGS, "<answer>a</answer> no, <answer>b</answer>", "answer", "b"),
        (TAGS, "<search>q</search><answer>a</answer>", "answer", "a"),
        (TAGS, "<answer></answer>", "invalid", "empty <answer>"),
        (TAGS, "<search>  </search>", "invalid", "empty <search>"),
        (TAGS, "just text", "invalid", NEITHER),
        (TAGS, "", "invalid", NEITHER),
        (TAGS, "<information>x</information>", "invalid", NEITHER),
        (EVO, SEARCH, "search", "dogs"),
        (EVO, f"<think>t</think>{BACKTRACK}", "backtrack", ""),
        (EVO, ANSWER, "answer", "x"),
        (EVO, "<think>t</think><refuse>why</refuse>", "refuse", "why"),
        (EVO, "<answer> x </answer>", "answer", "x"),
        (EVO, f"<think>I could use {BACKTRACK}</think><answer>x</answer>", "answer", "x"),
        (EVO, f"<think>unclosed {BACKTRACK}", "backtrack", ""),
        (EVO, "<search>unclosed", "invalid", NONE),
        (EVO, "", "invalid", NONE),
        (EVO, "<backtrack>", "invalid", NONE),
        (EVO, "<search> </search>", "invalid", "empty <search>"),
        (EVO, "<refuse></refuse>", "invalid", "empty <refuse>"),
        (EVO, SEARCH + ANSWER, "invalid", MANY),
        (EVO, BACKTRACK + BACKTRACK, "invalid", MANY),
        (EVO, ANSWER + BACKTRACK, "invalid", MANY),
        (O1, query("capital of\n Peru"), "search", "capital of Peru"),
        (O1, query("a") + query("b"), "search", "b"),
        (O1, query("x") + " \\boxed{Rome}", "answer", "Rome"),
        (O1, "\\boxed{Paris} or rather " + query("x"), "search", "x"),
        (O1, "\\boxed{Paris} no, \\boxed{ Rome }", "answer", "Rome"),
        (O1, "\\boxed{\\text{Rome}}", "answer", "Rome"),
        (O1, "\\boxed{a {b} c}", "answer", "a {b} c"),
        (O1, "\\boxed{Rome", "invalid", NO_BOX),
        (O1, "\\boxed{}", "invalid", "empty boxed answer"),
        (O1, query(" "), "invalid", "empty search query"),
        (O1, "<|begin_search_query|>x", "invalid", NO_BOX),
        (O1, "", "invalid", NO_BOX),
        (SELF_ASK, "Follow up: Who?\nmore", "search", "Who?"),
        (SELF_ASK, "Follow-up: Who", "search", "Who"),
        (SELF_ASK, "follow up:\nWho?", "search", "Who?"),
        (SELF_ASK, "So the final answer is\nAnn", "answer", "Ann"),
        (SELF_ASK, "So the final answer is: **Ann**.", "answer", "Ann"),
        (SELF_ASK, "Follow up: Intermediate answer:", "invalid", "empty follow up question"),
        (SELF_ASK, "So the final answer is:", "invalid", "empty final answer"),
        (SELF_ASK, "So the final answer is:\nQuestion:", "invalid", "empty final answer"),
        (SELF_ASK, "Follow up:\nQuestion:", "invalid", "empty follow up question"),
        (SELF_ASK, "Are follow up questions needed here: Yes.", "invalid", NO_ANSWER),
        (SELF_ASK, "", "invalid", NO_ANSWER),
        (ARENA, "<relevance>[2]</relevance><answer>Oslo</answer>", "answer", "Oslo"),
        (ARENA, "<answer>a</answer><answer> b </answer>", "answer", "b"),
        (ARENA, "<answer> </answer>", "invalid", "empty <answer>"),
        (ARENA, "Oslo", "invalid", "no <answer>"),
        (EVIOMNI, "<reason>r</reason><extract>e</extract><answer>a</answer>", "answer", "a"),
        (EVIOMNI, "<extract>e</extract>", "invalid", "no <answer>"),
        (EVIOMNI, "<answer> </answer>", "invalid", "empty <answer>"),
        (EXTRACTOR, "<reason>r</reason><extract> e </extract>", "answer", "e"),
        (READER, "\nParis\nmore", "answer", "Paris"),
    ],
)
def test_the_action_of_a_turn(protocol: AgentProtocol, text: str, kind: str, body: str):
    assert protocol.read(text) == (kind, body)


@pytest.mark.parametrize("protocol", [TAGS, EVO, O1, SELF_ASK, ARENA, READER], ids=lambda p: type(p).__name__)
@given(text=st.text(alphabet="\\boxed{} <>/|abcdefhiknorstuw", max_size=60))
def test_reading_never_fails(protocol: AgentProtocol, text: str):
    decision = protocol.read(text)
    assert decision.kind in ("search", "backtrack", "answer", "refuse", "invalid")
    assert bool(decision.text) == (decision.kind != "backtrack")
