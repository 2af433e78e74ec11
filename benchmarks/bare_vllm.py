"""vLLM without Sleuth: LLM.generate over all episodes, one round of turns after another."""

from collections.abc import Sequence
from typing import Any

from rollouts import STOPS, Episode, in_rounds
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.models import load_tokenizer, loading
from sleuth.engines.vllm import CPU_CACHE_GIB, check_version


class BareVLLM:
    """The settings of our engine: prefixes are cached, nothing is compiled."""

    def __init__(self, name: str, dtype: str) -> None:
        check_version()
        from vllm import LLM

        self.tokenizer = HFTokenizer(load_tokenizer(name))
        with loading(name) as (source, _):
            self._llm: Any = LLM(
                model=source,
                dtype=dtype,
                enable_prefix_caching=True,
                enable_chunked_prefill=False,
                enforce_eager=True,
                generation_config="vllm",
                kv_cache_memory_bytes=int(CPU_CACHE_GIB * 2**30),
            )

    def play(self, episodes: Sequence[Episode], max_new: int) -> list[list[int]]:
        """Greedy tokens of each episode."""
        from vllm import SamplingParams
        from vllm.inputs import tokens_input

        def write(contexts: Sequence[Episode], limit: int) -> list[list[int]]:
            options = SamplingParams(max_tokens=limit, temperature=0, stop=list(STOPS))
            done = self._llm.generate(
                [tokens_input(context) for context in contexts], options, use_tqdm=False
            )
            return [list(output.outputs[0].token_ids) for output in done]

        return in_rounds(self, write)(episodes, max_new)  # type: ignore[arg-type]

    def release(self) -> None:
        """Forget cached prefixes."""
        self._llm.reset_prefix_cache()

    def describe(self) -> dict[str, str]:
        """vLLM's version, under the name of this way."""
        import vllm

        return {"bare vllm": vllm.__version__}
