"""A retriever as a service: `/retrieve` as Search-R1's clients call it, and MCP's `search` and `fetch`.

limits: what one server takes · wire: requests read, replies written · batching: queries searched at once
or together · metrics: what happened, for Prometheus · service: opening, ready, closing · rounds: what was
read together is answered together · front: plain requests, straight off the socket · app: the routes (starlette) · server: the process (uvicorn) · workers: several of them on one socket ·
mcp_tools: the same retriever over stdio, by MCP.
"""
