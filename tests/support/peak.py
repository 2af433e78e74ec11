"""Peak memory of real updates in a process of its own: `peak.py OPTIONS`, the options of Policy as JSON, prints bytes."""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from sleuth.training.memory import Shape, _update
from sleuth.training.policy import Policy
from support import toy

SIZES = {
    "hidden_size": 384,
    "intermediate_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "vocab_size": 8192,
    "max_position_embeddings": 1024,
}
SHAPES = (Shape(0, 1, 768, 384), Shape(0, 4, 192, 96))


def model() -> Any:
    """A random Llama of 23 million parameters."""
    return toy.model(**SIZES)


def measure(options: dict[str, Any]) -> int:
    """Bytes that the process takes for a policy and two updates of SHAPES."""
    _update(Policy(toy.model(), lora_rank=2).forward, Shape(0, 1, 8, 2))  # loads what the first pass loads
    before = _status("VmRSS")
    policy = Policy(model(), **options)
    adamw = torch.optim.AdamW(policy.trainable_parameters(), fused=True)
    for shape in [*SHAPES, *SHAPES]:
        _update(policy.forward, shape)
        adamw.step()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(measure(json.loads(sys.argv[1])))
