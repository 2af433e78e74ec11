"""Verbs over runs: train, evaluate, demonstrate, ask, chat, export, recipes."""
