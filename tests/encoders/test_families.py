import pytest

from sleuth.encoders.by_name import open_encoder
from sleuth.encoders.families import family_of, full_name
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.errors import ConfigError, EngineError

BGE = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("/models/e5-large", "query: ", "passage: "),
        ("BAAI/bge-base-en-v1.5", BGE, ""),
        ("BAAI/bge-small-en", BGE, ""),
        ("BAAI/bge-m3", "", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
        ("facebook/contriever-msmarco", "", ""),
    ],
)
def test_prefixes(name: str, query: str, passage: str):
    family = family_of(name)
    assert family is not None
    assert (family.query_prefix, family.passage_prefix) == (query, passage)
    assert SentenceEncoder(name).remark == ""


@pytest.mark.parametrize(
    "name",
    ["intfloat/e5-mistral-7b-instruct", "intfloat/multilingual-e5-large-instruct", "me/my-e5-base", "x"],
)
def test_a_name_that_only_resembles_a_family_gets_a_warning(name: str):
    assert family_of(name) is None
    assert "no prefixes known" in SentenceEncoder(name).remark
    assert SentenceEncoder(name, query_prefix="Q: ").remark == ""


def test_names_without_owner():
    names = ("e5-base-v2", "bge-small-en-v1.5", "me/e5-base-v2", "unknown")
    full = ["intfloat/e5-base-v2", "BAAI/bge-small-en-v1.5", "me/e5-base-v2", "unknown"]
    assert list(map(full_name, names)) == full


@pytest.mark.parametrize(
    "name", ["dpr", "facebook/dpr-ctx_encoder-single-nq-base", "facebook-dpr-ctx_encoder-single-nq-base"]
)
def test_dpr_has_two_models_and_no_unit_length(name: str):
    encoder = SentenceEncoder(name)
    assert encoder.name == "sentence-transformers/facebook-dpr-ctx_encoder-single-nq-base"
    assert encoder._query_name == "sentence-transformers/facebook-dpr-question_encoder-single-nq-base"
    assert not encoder.normalised
    assert SentenceEncoder(name, query_model="", normalise=True)._query_name == encoder.name
    assert SentenceEncoder(name, normalise=True).normalised


def test_opening_by_name():
    for name in ("minilm", "minilm:/models/m", "some/model"):
        assert open_encoder(name).name == name
    assert open_encoder("e5-base-v2") == SentenceEncoder("e5-base-v2")
    with pytest.raises(ConfigError, match="unknown encoder 'minilmm'; did you mean 'minilm'"):
        open_encoder("minilmm")
    with pytest.raises(ConfigError, match="unknown encoder ''"):
        open_encoder("")


def test_no_model():
    with pytest.raises(EngineError, match="no encoder given"):
        SentenceEncoder().encode(["x"])
