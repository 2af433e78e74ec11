"""sleuth eval of other people's models: any checkpoint and any endpoint under any recipe's protocol."""

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.cli import main
from sleuth.evaluation.result import load_evaluation
from sleuth.recipes import RECIPES, load_recipe
from sleuth.storage import write_json

Capture = pytest.CaptureFixture[str]

QUESTIONS = [
    {
        "id": f"q{i}",
        "question": f"Who is the mayor of {city}?",
        "answers": [f"{city}son"],
        "passages": [{"id": f"p{i}", "title": city, "text": f"The mayor of {city} is Mr {city}son."}],
        "gold_ids": [f"p{i}"],
        "dataset": "hotpotqa",
    }
    for i, city in enumerate(("Arlen", "Brill"))
]


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "test.jsonl"
    path.write_text("\n".join(map(json.dumps, QUESTIONS)))
    return f"jsonl:{path}"


@pytest.fixture
def endpoint(recorded: Any) -> str:
    """A chat endpoint that always says the same, and judges answers by Table 8 of ARENA."""

    def reply(request: Any) -> Any:
        prompt = request.json["messages"][0]["content"]
        text = "<summary>* a\n- b</summary><answer>Arlenson</answer>"
        if "<evaluate>" in prompt:
            text = "<think>t</think><answer>Arlenson</answer>"
        if "correct answer list" in prompt:
            text = "yes" if '["Arlenson"]' in prompt else "no"
        return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}

    models = {"data": [{"id": "m", "max_model_len": 9000}]}
    server = recorded(("GET", "/v1/models", 200, models), ("POST", "/v1/chat/completions", 200, reply))
    return f"openai:{server.url}#m"


def evaluated(tmp_path: Path, recipe: str, *more: str) -> tuple[int, dict[str, Any]]:
    folder = tmp_path / "e"
    code = main(["eval", recipe, "-o", str(folder), "--json", *more])
    return code, json.loads((folder / "result.json").read_text()) if code == 0 else {}


def test_an_endpoint_under_a_recipe_s_protocol(tmp_path: Path, data: str, endpoint: str, capsys: Capture):
    more = ("--model", endpoint, "--data", data, "--set", "retriever=given")
    code, result = evaluated(tmp_path, "search-r1/paper", *more)
    assert code == 0
    assert json.loads(capsys.readouterr().out)["em"]["value"] == 0.5
    assert result["settings"]["model"] == endpoint.replace("#", "/v1#")
    assert result["settings"]["protocol"]["part"] == "SearchTags"
    assert result["engine"] == {"engine": "OpenAIEngine", "context_length": "36000", "api": "chat"}


def test_an_llm_judges_every_response(
    tmp_path: Path, data: str, endpoint: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "cache"))
    more = ("--model", endpoint, "--data", data, "--set", "retriever=given", "--llm-judge", endpoint)
    for _ in range(2):  # verdicts in the folder are kept
        _, result = evaluated(tmp_path, "search-r1/paper", *more)
        assert (result["metrics"]["llm_judge"]["value"], result["metrics"]["llm_judge"]["n"]) == (0.5, 2)
    verdicts = (tmp_path / "e" / "judged.jsonl").read_text().splitlines()
    assert [json.loads(line)["llm_judge"] for line in verdicts] == [1.0, 0.0]
    assert [record.metrics["llm_judge"] for record in load_evaluation(tmp_path / "e").records()] == [1.0, 0.0]
    rows = [
        {"prediction": "x", "response": "It is Arlenson.", "answers": [a]} for a in ("Arlenson", "Brillson")
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    capsys.readouterr()
    assert main(["score", "--dataset", "nq", "--input", str(path), "--llm-judge", endpoint, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["llm_judge"]["value"], scores["llm_judge_of"]["unjudged"]) == (0.5, 0)


@pytest.mark.parametrize(
    "recipe", ["evinote-rag/paper", "evinote-rag/base", "eval-rar/paper", "direct/paper"]
)
def test_evidence_quality_is_measured_for_every_answer(
    recipe: str, tmp_path: Path, data: str, endpoint: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    # "evinote-rag" rows note "* a", "- b"; base thinks "t"; "direct" has its whole reply, which names one answer.
    more = ["--model", endpoint, "--data", data, "--judge", "lexical"]
    more += ["--set", "retriever=given"] if recipe != "direct/paper" else []
    more += ["--set", "reward.judge=lexical"] if "evinote" in recipe else []
    for _ in range(2):
        code, result = evaluated(tmp_path, recipe, *more)
        assert code == 0
        assert result["metrics"]["eqr"]["n"] == 2
        assert json.loads(capsys.readouterr().out)["eqr"]["value"] == result["metrics"]["eqr"]["value"]
    assert ("reward/entailment" in result["metrics"]) == ("evinote" in recipe)
    assert len((tmp_path / "e" / "judged.jsonl").read_text().splitlines()) == 2
    assert len([r.metrics["eqr"] for r in load_evaluation(tmp_path / "e").records()]) == 2
    assert main(["eval", recipe, "-o", str(tmp_path / "e"), *more[:4], "--judge", "small", *more[6:]]) == 1
    assert "has eqr by lexical" in capsys.readouterr().err


def test_a_teacher_s_right_answers_are_written_and_learnt(
    tmp_path: Path, data: str, endpoint: str, capsys: Capture, tiny_model: Path
):
    out = tmp_path / "lessons.jsonl"
    more = ("--set", "retriever=given", "--data", data, "-o", str(out), "--json")
    assert main(["demonstrate", "eval-rar/paper", "--model", endpoint, *more]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(out), "kept": 1, "questions": 2}
    assert main(["demonstrate", "eval-rar/paper", "--model", endpoint, *more]) == 0  # continues
    again = capsys.readouterr()
    assert json.loads(again.out) == {"file": str(out), "kept": 1, "questions": 2}
    assert "1 questions are left" in again.err
    assert len(out.read_text().splitlines()) == 1
    sizes = ("train_data", "eval_data")
    sets = [f"scale.{name}={data}" for name in sizes] + [f"scale.model={tiny_model}", "scale.steps=0"]
    sets += ["retriever=given", "scale.max_context=1000", "scale.max_new_tokens=20", "scale.dev_questions=0"]
    arguments = [word for setting in sets for word in ("--set", setting)]
    run = ["train", "eval-rar/cpu", "-o", str(tmp_path / "run"), "--demonstrations", str(out), "--no-eval"]
    assert main([*run, *arguments]) == 0
    assert "1 demonstrations of" in capsys.readouterr().err
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["phase"] for row in rows] == ["warm_start"] * 3


def test_every_result_names_what_its_figures_depend_on(tmp_path: Path, data: str, endpoint: str):
    """Retrieval, normaliser, decoding, budget and versions."""
    more = ("--model", endpoint, "--data", data, "--set", "retriever=given", "--set", "scale.top_k=7")
    _, result = evaluated(tmp_path, "rag/cpu", *more)
    settings = result["settings"]
    assert settings["retriever"]["retriever"] == "given"
    assert {"analyser", "k1", "b"} <= set(settings["retriever"])
    assert settings["rules"]["hotpotqa"]["normaliser"] == "squad"
    assert settings["decoding"] == {"method": "greedy", "temperature": 0.0, "top_p": 1.0}
    assert settings["limits"]["top_k"] == 7
    assert {"max_steps", "max_new_tokens", "max_passage_tokens", "max_context"} <= set(settings["limits"])
    assert settings["questions"]["n"] == 2
    assert {"python", "sleuth", "numpy", "httpx"} <= set(result["versions"])
    assert result["source"] == data


def test_a_missing_judge_costs_the_reward_only(tmp_path: Path, data: str, endpoint: str, capsys: Capture):
    more = ("--model", endpoint, "--data", data, "--set", "retriever=given")
    nowhere = ("--set", f"reward.judge.model={tmp_path / 'no-judge'}", "--set", "reward.eqr=always")
    code, result = evaluated(tmp_path, "evinote-rag/paper", *more, *nowhere)
    assert code == 0
    assert result["metrics"]["em"]["n"] == 2
    err = capsys.readouterr().err
    assert "2 of 2 episodes have no reward; the first: " in err
    assert "no-judge" in err


@pytest.mark.slow
@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_a_checkpoint_under_every_recipe_s_protocol(tmp_path: Path, data: str, tiny_model: Path, recipe: str):
    settings = ["retriever=given", "scale.max_new_tokens=4", "scale.max_steps=2", "scale.max_context=1000"]
    changed = [word for setting in settings for word in ("--set", setting)]
    code, result = evaluated(tmp_path, recipe, "--model", str(tiny_model), "--data", data, *changed)
    assert code == 0
    assert (result["n"], result["metrics"]["em"]["n"], result["faults"]) == (2, 2, 0)
    assert result["engine"]["engine"] == "TransformersEngine"
    assert {"arithmetic", "device"} <= set(result["engine"])


def test_a_test_split_is_reported_on_whatever_the_recipe_s_curve(tmp_path: Path, data: str, endpoint: str):
    """A test split may be reported on, though never watched while training."""
    more = ("--model", endpoint, "--data", data, "--set", "retriever=given", "--set", "scale.eval_every=1")
    assert evaluated(tmp_path, "rag/cpu", *more)[0] == 0


def test_training_that_would_watch_a_test_split_is_refused(data: str, tmp_path: Path, capsys: Capture):
    settings = ["scale.eval_every=1", f"scale.eval_data={data}", "retriever=given"]
    changed = [word for setting in settings for word in ("--set", setting)]
    assert main(["train", "search-r1/cpu", "-o", str(tmp_path / "run"), *changed]) == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "not named dev or valid" in line
    assert not (tmp_path / "run" / "recipe.json").exists()


def test_a_reward_by_gold_passages_without_gold_ids_is_a_warning(
    tmp_path: Path, endpoint: str, capsys: Capture
):
    path = tmp_path / "test.jsonl"
    path.write_text("\n".join(json.dumps(row | {"gold_ids": []}) for row in QUESTIONS))
    code, result = evaluated(tmp_path, "arena/cpu", "--model", endpoint, "--data", f"jsonl:{path}")
    assert (code, result["metrics"]["em"]["value"]) == (0, 0.5)
    assert "figures are not comparable: arena/cpu scores searches by gold" in capsys.readouterr().err


def test_options_without_a_use_are_refused(tmp_path: Path, data: str, endpoint: str, capsys: Capture):
    for more, message in (
        (["--samples", "2", "--judge", "lexical"], "samples are not judged"),
        (["--temperature", "0.5"], "--temperature is that of --samples"),
    ):
        assert main(["eval", "direct/paper", "--model", endpoint, "--data", data, *more]) == 1
        assert message in capsys.readouterr().err


def test_an_unfinished_run_is_not_evaluated_with_another_model(tmp_path: Path, data: str, capsys: Capture):
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "run" / "recipe.json", load_recipe("direct/cpu").to_dict())
    assert main(["eval", str(tmp_path / "run"), "--data", data]) == 1
    assert "holds no trained model" in capsys.readouterr().err


def test_a_setting_limits_the_questions_of_named_data(tmp_path: Path, data: str, endpoint: str):
    more = ["--model", endpoint, "--data", data, "--set", "scale.eval_questions=1"]
    assert evaluated(tmp_path, "direct/paper", *more)[1]["n"] == 1


def test_samples_of_an_endpoint_have_no_entropy(tmp_path: Path, data: str, endpoint: str, capsys: Capture):
    more = ["--model", endpoint, "--data", data, "--samples", "2", "--json"]
    assert main(["eval", "direct/paper", "-o", str(tmp_path / "h"), *more]) == 0
    assert json.loads(capsys.readouterr().out)["all"]["answer_entropy"]["value"] is None
