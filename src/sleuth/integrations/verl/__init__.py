"""Training on clusters by verl 0.9: `export` writes what it reads, the other modules run inside it.

Only agent_loop.py and advantage.py import verl, so that an export needs no verl.
"""
