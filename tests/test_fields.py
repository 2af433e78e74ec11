import pytest

from sleuth import fields
from sleuth.fields import FieldError, as_text


def test_text_is_stripped_and_the_first_name_present_counts():
    assert fields.text_in({"a": None, "b": " x "}, "a", "b") == "x"
    assert fields.optional_text({}, "a") == ""
    assert fields.optional_text({"a": "  "}, "a") == ""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "missing"),
        ("", "empty"),
        (" \n", "empty"),
        (True, "not True"),
        (["x" * 1000], "must be text, not"),
        ("a\ud800", "surrogate"),
    ],
)
def test_values_that_are_not_text_are_refused(value: object, reason: str):
    with pytest.raises(FieldError, match=reason) as caught:
        as_text(value, "question")
    assert len(str(caught.value)) < 100


def test_ids_are_text_or_whole_numbers():
    assert fields.id_in({"id": 7}, "id") == "7"
    assert fields.id_in({"_id": "a"}, "id", "_id") == "a"
    assert fields.id_in({}, "id") == ""
    for bad in (True, 1.5, float("nan"), [], 10**5000, ""):
        with pytest.raises(FieldError, match="id: "):
            fields.id_in({"id": bad}, "id")


def test_lists_may_be_json_inside_text():
    assert fields.as_list('["a", "b"]', "x") == ["a", "b"]
    assert fields.texts(["a", " a ", "b"], "x") == ("a", "b")
    for bad in ("[", "{}", None, 3, {"a": 1}):
        with pytest.raises(FieldError, match="x: "):
            fields.as_list(bad, "x")
    with pytest.raises(FieldError, match=r"x\[1\]: must be text"):
        fields.texts(["a", 2], "x")


def test_flags_and_records():
    assert fields.flag_in({}, "f", default=True) is True
    assert fields.flag_in({"f": False}, "f", default=True) is False
    with pytest.raises(FieldError, match="must be true or false"):
        fields.flag_in({"f": 1}, "f", default=True)
    with pytest.raises(FieldError, match="must be an object"):
        fields.as_record([], "record")
