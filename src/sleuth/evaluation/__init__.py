"""Trajectories → table: run a file of questions, score predictions, compare runs, report.

runner writes a folder, result reads it; measures says what is recorded, statistics how it is
averaged and tested, figures how it is worded.
"""
