"""Pure (trajectory or values) → number. Every figure is finite; one that does not exist is None.

answers: EM, F1 and cover EM by data set · evidence: what was shown · efficiency: what it cost ·
refusal: what was declined. Which of them an evaluation records is one table, in
sleuth.evaluation.measures.
"""
