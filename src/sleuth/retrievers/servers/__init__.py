"""Passages that lie elsewhere: `/retrieve` servers, Qdrant, OpenSearch, Elasticsearch, Milvus, and how they are asked."""
