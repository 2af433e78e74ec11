import json
import shutil
import sys
from pathlib import Path

import pytest

from sleuth import recipes
from sleuth.algorithms import ALGORITHMS
from sleuth.algorithms.base import Algorithm
from sleuth.engines import ENGINES
from sleuth.engines.base import Engine
from sleuth.errors import ConfigError
from sleuth.protocols import PROTOCOLS
from sleuth.recipes import load_recipe, recipe_file
from sleuth.registry import keep_user_module, resolve
from sleuth.rewards import REWARDS
from sleuth.rewards.base import Reward

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


@pytest.mark.parametrize(
    ("room", "names", "kind"),
    [
        ("algorithms", ALGORITHMS, Algorithm),
        ("engines", ENGINES, Engine),
        ("protocols", PROTOCOLS, object),
        ("rewards", REWARDS, Reward),
    ],
)
def test_every_registered_name_is_of_its_kind(room: str, names: dict[str, str], kind: type):
    assert all(issubclass(resolve(room, names, name), kind) for name in names)
    with pytest.raises(ConfigError, match=f"did you mean {min(names)!r}"):
        resolve(room, names, f"{min(names)}x")


def test_a_bare_name_is_paper_scale():
    assert load_recipe("eval-rar") == load_recipe("eval-rar/paper")


def test_a_method_is_one_short_file():
    files = [path for path in Path(recipes.__file__).parent.glob("*.py") if path.name != "__init__.py"]
    assert len(files) > 10
    long = {path.name for path in files if len(path.read_text().splitlines()) > 100}
    assert long <= {"baselines.py", "released.py"}  # nine methods; three long prompts


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


def test_a_users_own_file_imports_its_neighbours_and_a_run_keeps_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    mine, run = tmp_path / "mine", tmp_path / "run"
    mine.mkdir()
    run.mkdir()
    part, equals, recipe = OWN.partition("RECIPE =")
    (mine / "shouting.py").write_text(part)
    (mine / "mine.py").write_text(f"from shouting import Shouting, load_recipe\n{equals}{recipe}")
    assert load_recipe(str(mine / "mine.py")).name == "shouting"
    keep_user_module(mine / "mine.py", run / "recipe.py")
    shutil.rmtree(mine)
    del sys.modules["shouting"]
    assert load_recipe(str(run)).name == "shouting"
    keep_user_module(run / "recipe.py", run / "recipe.py")  # a run that is continued from its own folder
    del sys.modules["shouting"]
    assert {file.name for file in run.glob("*.py")} == {"recipe.py", "shouting.py"}


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


def test_a_folder_with_the_name_of_a_recipe_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rag" / "cpu").mkdir(parents=True)
    assert load_recipe("rag/cpu").name == "rag/cpu"
    assert load_recipe("rag").name == "rag/paper"
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recipe(str(tmp_path / "rag"))


def test_another_user_s_file_of_the_same_name_is_refused(tmp_path: Path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "namesake_steps.py").write_text(f"STEPS = {name!r}")
        (tmp_path / name / "recipe.py").write_text(f"import namesake_steps\n{OWN}")
    load_recipe(str(tmp_path / "one" / "recipe.py"))
    with pytest.raises(ConfigError, match="would be imported in place of"):
        load_recipe(str(tmp_path / "other" / "recipe.py"))
