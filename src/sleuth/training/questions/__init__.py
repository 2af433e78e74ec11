"""Questions to train on: their order, the pool that draws them, dev questions and headroom."""
