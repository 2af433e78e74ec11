"""Several processes: ranks that share the work, and parameters divided among them."""
