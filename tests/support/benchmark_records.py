"""Invented records in the published layouts of benchmarks; every name in them is made up."""

HOTPOT = {
    "_id": "h1",
    "question": "What river flows through the town where the painter Odo Verrin was born?",
    "answer": "Lumme",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Odo Verrin", 0], ["Karstad", 1]],
    "context": [
        ["Karstad", ["Karstad is a town.", " The river Lumme flows through it."]],
        ["Odo Verrin", ["Odo Verrin was a painter born in Karstad."]],
        ["Pell", ["Pell is a village."]],
    ],
}

TWOWIKI = {
    "_id": "w1",
    "question": "When did the director of film Grey Harbour (Film) die?",
    "answer": "3 May 1971",
    "answer_id": "Q77",
    "type": "compositional",
    "supporting_facts": [["Grey Harbour (film)", 0], ["Ansel Tome", 0]],
    "context": [
        ["Ansel Tome", ["Ansel Tome (died 3 May 1971) was a director."]],
        ["Grey Harbour (film)", ["Grey Harbour is a film by Ansel Tome."]],
        ["Pell", ["Pell is a village."]],
    ],
    "evidences": [["Grey Harbour", "director", "Ansel Tome"], ["Ansel Tome", "date of death", "3 May 1971"]],
    "evidences_id": [["Q1", "director", "Q2"], ["Q2", "date of death", "Q77"]],
    "entity_ids": "Q1_Q2",
}

MUSIQUE = {
    "id": "2hop__11_12",
    "paragraphs": [
        {"idx": 0, "title": "Pell", "paragraph_text": "Pell is a village.", "is_supporting": False},
        {"idx": 1, "title": "Quen", "paragraph_text": "Quen is part of Ostria.", "is_supporting": True},
        {
            "idx": 2,
            "title": "Ostria",
            "paragraph_text": "Mara Lind was the first queen of Ostria.",
            "is_supporting": True,
        },
    ],
    "question": "Who was the first queen of Quen's country?",
    "question_decomposition": [
        {"id": 11, "question": "Quen >> country", "answer": "Ostria", "paragraph_support_idx": 1},
        {
            "id": 12,
            "question": "Who was the first queen of #1 ?",
            "answer": "Mara Lind",
            "paragraph_support_idx": 2,
        },
    ],
    "answer": "Mara Lind",
    "answer_aliases": ["Queen Mara", "Mara Lind"],
    "answerable": True,
}
