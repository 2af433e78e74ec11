"""EVO-RAG in one place: protocol, step rewards, siblings, preference pairs, DPO, and its recipes."""
