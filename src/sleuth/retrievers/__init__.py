"""Queries in, ranked passages out.

base: the interface · bm25: words, from an index on disk (build makes it, update changes it) · given: the paragraphs
that come with a question · all_given: the same, unsearched · fusion: reciprocal rank fusion of several ·
none: nothing is ever found · dense: vectors, from an index that dense_build makes · hybrid: words and vectors ·
rerank: a cross-encoder over another retriever's passages · opening: an index by its directory ·
remote: a server's `/retrieve` (calling, breaker: how it is asked; cache: what was found lately) · lookup: passages by id ·
search_engine: what adapters have in common · qdrant (qdrant_connection), opensearch, milvus: existing engines ·
noisy, withholding, contradicting: another retriever, made worse on purpose.
"""

RETRIEVERS = {
    "bm25": "sleuth.retrievers.bm25:BM25",
    "contradicting": "sleuth.retrievers.contradicting:Contradicting",
    "dense": "sleuth.retrievers.dense:Dense",
    "elasticsearch": "sleuth.retrievers.opensearch:Elasticsearch",
    "evidence": "sleuth.retrievers.evidence:Evidence",
    "given": "sleuth.retrievers.given:GivenParagraphs",
    "given-all": "sleuth.retrievers.all_given:AllGiven",
    "fusion": "sleuth.retrievers.fusion:Fusion",
    "hybrid": "sleuth.retrievers.hybrid:Hybrid",
    "milvus": "sleuth.retrievers.milvus:Milvus",
    "none": "sleuth.retrievers.none:NoRetriever",
    "noisy": "sleuth.retrievers.noisy:Noisy",
    "opensearch": "sleuth.retrievers.opensearch:OpenSearch",
    "qdrant": "sleuth.retrievers.qdrant:Qdrant",
    "remote": "sleuth.retrievers.remote:Remote",
    "rerank": "sleuth.retrievers.rerank:Rerank",
    "withholding": "sleuth.retrievers.withholding:Withholding",
}
"""Name → class, for recipes saved as JSON."""
