"""A retriever as a service: `/retrieve` as Search-R1's clients call it, and MCP's `search` and `fetch`.

server: process and workers (uvicorn) · app: routes (Starlette) · middleware: token, body size, deadline · batcher:
concurrent queries in one search · wire: requests and responses · replies: JSON and errors · metrics: Prometheus ·
limits: settings · mcp_tools: the same retriever over stdio.
"""
