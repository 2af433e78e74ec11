"""Models as token continuers: local, served by an HTTP endpoint, or scripted."""

from typing import Any

from sleuth.engines.base import Engine
from sleuth.errors import ConfigError, EngineError
from sleuth.registry import resolve

ENGINES = {
    "transformers": "sleuth.engines.transformers:TransformersEngine",
    "openai": "sleuth.engines.openai:OpenAIEngine",
    "vllm": "sleuth.engines.vllm:VLLMEngine",
    "openvino": "sleuth.engines.openvino:OpenVINOEngine",
    "scripted": "sleuth.engines.scripted:ScriptedEngine",
}
"""Name → class."""

_EXTRAS = {"transformers": "train", "openai": "openai", "vllm": "vllm", "openvino": "openvino"}


def open_engine(spec: str, **options: Any) -> Engine:
    """The engine a spec names; `options` go to its constructor or loader.

    "openai:<base_url>#<model>", "vllm:<model>", "openvino:<model>", "scripted" (with reply=…), or else a transformers
    model: a local folder, a Hugging Face name or "smollm2-135m-instruct".
    """
    kind, _, rest = spec.partition(":")
    if not spec.strip():
        raise ConfigError("the model name is empty")
    if kind == "openai":
        base_url, _, model = rest.partition("#")
        if not base_url or not model:
            raise ConfigError(f"write the endpoint as openai:<base_url>#<model>, not {spec!r}")
        engine: Engine = _load("openai")(base_url, model, **options)
    elif kind in ("vllm", "openvino") and rest:
        engine = _load(kind)(rest, **options)
    elif spec == "scripted":
        if "reply" not in options:
            raise ConfigError("the scripted engine needs reply=…, a function or a list of replies")
        engine = _load("scripted")(**options)
    else:
        engine = _load("transformers").load(spec, **options)
    return engine


def _load(name: str) -> Any:
    try:
        return resolve("engines", ENGINES, name)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(name, "train")
        raise EngineError(
            f"{error.name} is not installed: pip install '.[{extra}]' in the Sleuth checkout"
        ) from error
