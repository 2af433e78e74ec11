"""Weights into vLLM's workers: this module is imported where vLLM runs, which may be another machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class Receiver:
    """Worker extension of a vLLM server that takes a trainer's weights; see `VLLMServer`."""

    def take_weights_file(self, path: str) -> None:
        """Load a safetensors file with the names of the checkpoint."""
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            take_weights(self, ((name, file.get_tensor(name)) for name in file.keys()))  # noqa: SIM118


def take_weights(worker: Any, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Copy weights by their names in the checkpoint into vLLM's own layout; runs in vLLM's worker."""
    worker.model_runner.reload_weights(weights_iterator=weights)
    for layer in worker.model_runner.get_model().modules():
        # On CPU the output layer multiplies a packed copy, which a reload of tied embeddings leaves as it was.
        if hasattr(layer, "cpu_linear") and layer.weight.numel():
            layer.quant_method.process_weights_after_loading(layer)
