"""Queries in, ranked passages out.

base: the interface · bm25: words, from an index on disk (bm25_index) · dense: vectors of the same passages
(dense_index; index_files: manifests and publishing for both) · hybrid: words and vectors · fusion: reciprocal rank
fusion of several · llmlingua: another retriever's passages, compressed · rerank: another retriever's passages,
ordered by a cross-encoder · given: the paragraphs that come with a question, searched or not · evidence: what an
extractor wrote about them · none: nothing · opening: the retriever over an index directory · servers: search engines
over HTTP · perturbed: another retriever, made worse on purpose.
"""

RETRIEVERS = {
    "bm25": "sleuth.retrievers.bm25:BM25",
    "contradicting": "sleuth.retrievers.perturbed.contradicting:Contradicting",
    "dense": "sleuth.retrievers.dense:Dense",
    "elasticsearch": "sleuth.retrievers.servers.opensearch:Elasticsearch",
    "evidence": "sleuth.retrievers.evidence:Evidence",
    "given": "sleuth.retrievers.given:GivenParagraphs",
    "given-all": "sleuth.retrievers.given:AllGiven",
    "fusion": "sleuth.retrievers.fusion:Fusion",
    "hybrid": "sleuth.retrievers.hybrid:Hybrid",
    "llmlingua-2": "sleuth.retrievers.llmlingua:LLMLingua2",
    "milvus": "sleuth.retrievers.servers.milvus:Milvus",
    "none": "sleuth.retrievers.none:NoRetriever",
    "noisy": "sleuth.retrievers.perturbed.noisy:Noisy",
    "opensearch": "sleuth.retrievers.servers.opensearch:OpenSearch",
    "qdrant": "sleuth.retrievers.servers.qdrant:Qdrant",
    "remote": "sleuth.retrievers.servers.remote:Remote",
    "rerank": "sleuth.retrievers.rerank:Rerank",
    "withholding": "sleuth.retrievers.perturbed.withholding:Withholding",
}
"""Name → class, for recipes saved as JSON."""
