"""How agent and world talk: one file per family of methods."""

PROTOCOLS = {
    "arena": "sleuth.protocols.arena:ArenaSections",
    "eviomni": "sleuth.protocols.eviomni:EviOmni",
    "evo-rag": "sleuth.protocols.evo_rag:EvoRAG",
    "search-tags": "sleuth.protocols.search_tags:SearchTags",
    "plain-rag": "sleuth.protocols.plain_rag:PlainRAG",
    "script": "sleuth.protocols.demonstration:Script",
}
"""Name → class, for recipes saved as JSON."""
