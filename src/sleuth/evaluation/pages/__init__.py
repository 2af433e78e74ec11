"""HTML that opens from disk: reports and comparisons, with charts, episodes and nothing loaded."""
