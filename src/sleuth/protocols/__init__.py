"""How agent and world talk: one file per family of methods."""

PROTOCOLS = {
    "arena": "sleuth.protocols.arena:ArenaSections",
    "chain-of-thought": "sleuth.protocols.direct:ChainOfThought",
    "direct": "sleuth.protocols.direct:Direct",
    "eviomni": "sleuth.protocols.eviomni:EviOmni",
    "evo-rag": "sleuth.recipes.evo_rag.protocol:EvoRAG",
    "ircot": "sleuth.protocols.ircot:IRCoT",
    "iter-retgen": "sleuth.protocols.iter_retgen:IterRetGen",
    "search-o1": "sleuth.protocols.search_o1:SearchO1",
    "search-tags": "sleuth.protocols.search_tags:SearchTags",
    "plain-rag": "sleuth.protocols.plain_rag:PlainRAG",
    "self-ask": "sleuth.protocols.self_ask:SelfAsk",
    "script": "sleuth.protocols.demonstration:Script",
    "sure": "sleuth.protocols.sure:SuRe",
    "think-then-answer": "sleuth.protocols.direct:ThinkThenAnswer",
}
"""Name → class, for recipes saved as JSON."""
