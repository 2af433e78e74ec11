"""Questions over documents without labels.

material: the choice of passages · writing: prompts to a model · questions: candidates and their checks.
"""
