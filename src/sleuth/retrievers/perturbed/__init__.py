"""Another retriever, made worse on purpose: with noise, without gold passages, with contradictions."""
