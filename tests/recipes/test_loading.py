import json
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth import recipes
from sleuth.errors import ConfigError
from sleuth.recipes import load_recipe, recipe_file, recipe_names

OWN = """
from dataclasses import dataclass
from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes import load_recipe

@dataclass(frozen=True)
class Shouting(SearchTags):
    loudness: int = 3

    def prompt(self, question, hits=()):
        return tuple((role, text.upper()) for role, text in super().prompt(question, hits))

RECIPE = load_recipe("search-r1/cpu").but(name="shouting", protocol=Shouting(instruction="{question}"))
"""


def test_names():
    assert {
        "eval-rar/paper",
        "eval-rar/cpu",
        "search-r1/paper",
        "search-r1/cpu",
        "rag/paper",
        "rag/cpu",
    } <= set(recipe_names())
    assert load_recipe("eval-rar") == load_recipe("eval-rar/paper")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("eval-rr/cpu", "did you mean 'eval-rar/cpu'"),
        ("eval-rar/gpu", "did you mean 'cpu'"),
        ("", "unknown recipe"),
    ],
)
def test_unknown_names(name: str, message: str):
    with pytest.raises(ConfigError, match=message):
        load_recipe(name)


def test_paper_and_cpu_scale_share_the_method():
    for name in ("eval-rar", "search-r1", "rag"):
        paper, cpu = load_recipe(name), load_recipe(f"{name}/cpu")
        assert paper.reward == cpu.reward
        assert replace(paper.algorithm, beta=0.0) == cpu.algorithm  # type: ignore[type-var]


def test_a_method_is_one_short_file():
    files = [path for path in Path(recipes.__file__).parent.glob("*.py") if path.name != "__init__.py"]
    assert len(files) > 10
    assert {path.name: n for path in files if (n := len(path.read_text().splitlines())) > 100} == {}


def test_every_paper_scale_says_where_it_comes_from():
    for name in recipe_names():
        recipe = load_recipe(name)
        assert recipe.source
        assert recipe.variant in ("paper", "code", "cpu")
        if recipe.variant == "cpu":
            assert recipe.scale.model == "smollm2-135m-instruct"


def test_eval_rar_follows_the_paper():
    recipe = load_recipe("eval-rar")
    assert recipe.algorithm.group_size == 5  # type: ignore[attr-defined]
    assert (recipe.algorithm.beta, recipe.algorithm.epsilon) == (0.001, 0.2)  # type: ignore[attr-defined]
    assert (recipe.scale.batch, recipe.scale.lr, recipe.scale.steps, recipe.scale.top_k) == (
        512,
        1e-6,
        200,
        3,
    )
    assert recipe.reward.bonus == 0.1  # type: ignore[attr-defined]


def test_a_users_own_file_with_its_own_class(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    recipe = load_recipe(str(path))
    assert recipe.name == "shouting"
    assert recipe.with_settings(["protocol.loudness=5"]).protocol.loudness == 5  # type: ignore[attr-defined]
    assert recipe_file(str(path)) == path
    assert recipe_file("eval-rar") is None


def test_a_run_of_a_users_own_file_can_be_loaded_again(tmp_path: Path):
    (tmp_path / "recipe.py").write_text(OWN)
    (tmp_path / "recipe.json").write_text(json.dumps({"settings": ["scale.steps=7"]}))
    assert load_recipe(str(tmp_path)).scale.steps == 7


def test_saved_json_and_run_folder(tmp_path: Path):
    recipe = load_recipe("eval-rar/cpu").with_settings(["scale.steps=9"])
    (tmp_path / "recipe.json").write_text(json.dumps(recipe.to_dict()))
    assert load_recipe(str(tmp_path)) == recipe
    assert load_recipe(str(tmp_path / "recipe.json")) == recipe


@pytest.mark.parametrize("content", ["", "[]", "{", '{"name": 3}', "\x00"])
def test_broken_json(tmp_path: Path, content: str):
    path = tmp_path / "recipe.json"
    path.write_text(content)
    with pytest.raises(ConfigError):
        load_recipe(str(path))


def test_broken_files(tmp_path: Path):
    with pytest.raises(ConfigError, match="no recipe file"):
        load_recipe(str(tmp_path / "none.py"))
    (tmp_path / "empty.py").write_text("X = 1\n")
    with pytest.raises(ConfigError, match="neither RECIPE nor RECIPES"):
        load_recipe(str(tmp_path / "empty.py"))
    (tmp_path / "syntax.py").write_text("def (\n")
    with pytest.raises(ConfigError, match="syntax"):
        load_recipe(str(tmp_path / "syntax.py"))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recipe(str(tmp_path))
