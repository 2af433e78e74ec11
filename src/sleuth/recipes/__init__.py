"""The methods: one short file each, at paper scale and at CPU scale.

`load_recipe` accepts a name ("eval-rar", "eval-rar/cpu"), a user's own .py file that defines
RECIPE or RECIPES, a saved recipe.json, or a run folder that holds one.
"""

from pathlib import Path

import msgspec

from sleuth.errors import ConfigError
from sleuth.recipe import Recipe
from sleuth.registry import nearest, resolve, user_module

RECIPES = {
    "arena": "sleuth.recipes.arena_variants:RECIPES",
    "autorefine": "sleuth.recipes.autorefine:RECIPES",
    "cot": "sleuth.recipes.baselines:COT",
    "direct": "sleuth.recipes.baselines:DIRECT",
    "eval-rar": "sleuth.recipes.eval_rar:RECIPES",
    "evinote-rag": "sleuth.recipes.evinote_variants:RECIPES",
    "eviomni": "sleuth.recipes.eviomni_variants:RECIPES",
    "evo-rag": "sleuth.recipes.evo_rag.variants:RECIPES",
    "ircot": "sleuth.recipes.baselines:IRCOT",
    "iter-retgen": "sleuth.recipes.baselines:ITER_RETGEN",
    "r1-searcher": "sleuth.recipes.released:R1_SEARCHER",
    "research": "sleuth.recipes.released:RESEARCH",
    "r1": "sleuth.recipes.baselines:R1",
    "rag": "sleuth.recipes.baselines:RAG",
    "search-o1": "sleuth.recipes.baselines:SEARCH_O1",
    "search-r1": "sleuth.recipes.search_r1:RECIPES",
    "self-ask": "sleuth.recipes.baselines:SELF_ASK",
    "simple-deep-searcher": "sleuth.recipes.released:SIMPLE_DEEP_SEARCHER",
    "sure": "sleuth.recipes.baselines:SURE",
}
"""Name → the file's dict of scales and variants; a bare name means "paper"."""


def recipe_names() -> list[str]:
    """Every recipe as "name/scale"."""
    return [f"{name}/{scale}" for name in RECIPES for scale in resolve("recipes", RECIPES, name)]


def is_own(spec: str) -> bool:
    """Whether `spec` names a file or a folder with a recipe, not one of ours."""
    path = Path(spec)
    named = any((path / name).is_file() for name in ("recipe.json", "recipe.py"))
    return (
        path.suffix in (".py", ".json") or named or (path.is_dir() and spec.partition("/")[0] not in RECIPES)
    )


def load_recipe(spec: str) -> Recipe:
    """The recipe that `spec` names. Raises ConfigError with the nearest right name."""
    path = Path(spec)
    if not spec.strip():
        raise ConfigError(f"unknown recipe {spec!r}{nearest(spec, RECIPES)}")
    if path.suffix == ".py":
        return _from_file(path)
    if is_own(spec):
        return _from_json(path / "recipe.json" if path.is_dir() else path)
    name, _, scale = spec.partition("/")
    if name not in RECIPES:
        raise ConfigError(f"unknown recipe {spec!r}{nearest(spec, [*RECIPES, *recipe_names()])}")
    variants: dict[str, Recipe] = resolve("recipes", RECIPES, name)
    if (scale or "paper") not in variants:
        raise ConfigError(f"recipe {name!r} has no {scale!r}{nearest(scale, variants)}")
    return variants[scale or "paper"]


def recipe_file(spec: str) -> Path | None:
    """The user's own .py file that `spec` names, so that a run can keep a copy; None for our own recipes."""
    own = Path(spec) / "recipe.py"
    path = own if own.is_file() and not own.with_suffix(".json").is_file() else Path(spec)
    return path if path.suffix == ".py" else None


def _from_file(path: Path) -> Recipe:
    module = user_module(path, "recipe")
    recipe = getattr(module, "RECIPE", None)
    if recipe is None and isinstance(several := getattr(module, "RECIPES", None), dict) and several:
        recipe = several.get("cpu") or next(iter(several.values()))
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"{path} defines neither RECIPE nor RECIPES")
    return recipe


def _from_json(path: Path) -> Recipe:
    own = path.with_name("recipe.py")
    try:
        data = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        if own.is_file():
            return _from_file(own)
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: not a recipe")
    settings = data.pop("settings", None)
    is_own = settings is not None and own.is_file()
    return _from_file(own).with_settings(settings) if is_own else Recipe.from_dict(data)
