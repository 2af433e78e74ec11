"""How agent and environment exchange text: one file per family of methods, prompted baselines in a folder."""

PROTOCOLS = {
    "arena": "sleuth.protocols.arena:ArenaSections",
    "chain-of-thought": "sleuth.protocols.prompted.direct:ChainOfThought",
    "direct": "sleuth.protocols.prompted.direct:Direct",
    "eviomni": "sleuth.protocols.eviomni:EviOmni",
    "eviomni-free-evidence": "sleuth.protocols.eviomni:FreeEvidence",
    "evo-rag": "sleuth.recipes.evo_rag.protocol:EvoRAG",
    "ircot": "sleuth.protocols.prompted.ircot:IRCoT",
    "iter-retgen": "sleuth.protocols.prompted.iter_retgen:IterRetGen",
    "marked-search": "sleuth.protocols.released:MarkedSearch",
    "search-o1": "sleuth.protocols.prompted.search_o1:SearchO1",
    "search-tags": "sleuth.protocols.search_tags:SearchTags",
    "plain-rag": "sleuth.protocols.prompted.direct:PlainRAG",
    "self-ask": "sleuth.protocols.prompted.self_ask:SelfAsk",
    "script": "sleuth.protocols.demonstration:Script",
    "sure": "sleuth.protocols.prompted.sure:SuRe",
    "think-then-answer": "sleuth.protocols.search_tags:ThinkThenAnswer",
}
"""Name → class, for recipes saved as JSON."""
