"""How Factbook questions are made: countries → facts → clues → one file for each kind of question."""
