"""Pure (trajectory or values) → number. Every figure is finite; one that does not exist is None.

answers: EM, F1 and cover EM by data set · support: supporting facts, triples, joint · sufficiency:
MuSiQue's groups · no_answer: SQuAD 2.0's threshold · selective: risk and coverage · retrieval: rankings ·
evidence: what was shown · citations: what supports each sentence · efficiency: what it cost · refusal:
what was declined. Which of them an evaluation records is one table, in sleuth.evaluation.measures.
"""
