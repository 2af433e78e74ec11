import pytest

from sleuth.datasets.splits import not_for_selection, split_of


@pytest.mark.parametrize(
    ("part", "split"),
    [
        ("factbook", "train"),
        ("factbook:dev", "dev"),
        ("musique:train/musique_ans_v1.0_dev.jsonl", "dev"),
        ("musique:dev/musique_ans_v1.0_train.jsonl", "train"),
        ("jsonl:valid/part-0001.jsonl", "dev"),
        ("jsonl:train_dev.jsonl", "dev"),
        ("jsonl:test_dev.jsonl", "test"),
        ("jsonl:EVAL.jsonl", "test"),
        ("jsonl:contest.jsonl", ""),
        ("jsonl:device.jsonl", ""),
        ("jsonl:C:\\data\\validation\\a.jsonl", "dev"),
        ("hub:hotpotqa/hotpot_qa/distractor:validation[:100]@hotpotqa", "dev"),
        ("hub:team/dev_data:test@nq", "test"),
        ("", ""),
    ],
)
def test_splits_by_name(part: str, split: str):
    assert split_of(part) == split


def test_every_part_counts():
    assert not_for_selection("factbook:dev+hotpotqa:valid.json") == []
    unfit = ["hotpotqa:test.json", "nq:a.jsonl"]
    assert not_for_selection("+".join(["factbook:dev", *unfit])) == unfit
