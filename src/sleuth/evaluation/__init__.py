"""Trajectories → table: run a file of questions, score predictions, compare runs, report.

runner writes a folder, result reads it; measures says what is recorded, statistics how it is
averaged and tested, figures how it is worded. answer_files: predictions of any system · comparing:
evaluations side by side · pages: HTML · perturbed: robustness curves · published: the papers' tables.
"""
