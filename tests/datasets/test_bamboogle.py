from pathlib import Path

from sleuth.datasets.bamboogle import BamboogleReader


def test_published_csv_with_commas_and_line_ends(tmp_path: Path):
    path = tmp_path / "bamboogle.csv"
    path.write_text('Question,Answer\n"Who led Ostria, when Pell\nburned?",Mara Lind\n,nobody\nWhy?,\n')
    loaded = BamboogleReader().load(path)
    (question,) = loaded.questions
    assert question.text == "Who led Ostria, when Pell\nburned?"
    assert question.answers == ("Mara Lind",)
    assert [(bad.line, bad.field, bad.reason) for bad in loaded.bad] == [
        (4, "Question", "empty"),
        (5, "Answer", "empty"),
    ]


def test_flashrag_row():
    assert BamboogleReader().question_of({"question": "q", "golden_answers": ["a"]}).answers == ("a",)
