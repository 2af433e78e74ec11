from pathlib import Path

from sleuth.datasets.popqa import PopQAReader

HEADER = "id\tsubj\tprop\tobj\ts_pop\to_pop\tquestion\tpossible_answers\n"


def test_published_table_holds_its_answers_as_json(tmp_path: Path):
    path = tmp_path / "popQA.tsv"
    path.write_text(
        HEADER
        + '42\tMara Lind\toccupation\tqueen\t31\t900\tWhat is Mara Lind\'s occupation?\t"[""queen"", ""monarch""]"\n'
        + "43\tIda Renn\toccupation\twriter\t3\t9\tWhat is Ida Renn's occupation?\tnot a list\n"
    )
    loaded = PopQAReader().load(path)
    (question,) = loaded.questions
    assert (question.id, question.answers, question.kind) == ("42", ("queen", "monarch"), "occupation")
    assert [(bad.line, bad.field) for bad in loaded.bad] == [(3, "possible_answers")]


def test_hub_and_flashrag_rows():
    hub = {"id": 42, "prop": "occupation", "question": "q", "possible_answers": '["queen"]', "s_pop": 31}
    flashrag = {"id": "42", "question": "q", "golden_answers": ["queen"], "metadata": {"prop": "occupation"}}
    assert PopQAReader().question_of(hub) == PopQAReader().question_of(flashrag)
