"""Retrievers over search servers: `/retrieve`, Qdrant, OpenSearch, Elasticsearch, Milvus, and their requests."""
