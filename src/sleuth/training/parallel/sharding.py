"""FSDP2: parameters, gradients and moments of the update divided among the ranks.

Each layer's parameters are gathered for its own pass and freed after it, and gradients arrive
divided. Every pass is a collective call, so all ranks must make the same passes in the same order.
Elsewhere a divided tensor is a DTensor; `plain`, `whole` and `divided_like` convert from and to plain ones.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from sleuth.training.parallel import ranks

T = TypeVar("T")


class Sharded(nn.Module):
    """A model whose parameters are divided; every pass through any of its parts is one call of this module."""

    def __init__(self, model: nn.Module, decoder: Callable[[Any], Any]) -> None:
        """Divide a copy of `model`, which is on every rank; `decoder` finds the stack of layers inside it."""
        super().__init__()
        self.model = deepcopy(model)
        units = [*decoder(self.model).layers, self]
        for unit in units:
            fully_shard(unit, reshard_after_forward=True)
        for unit in units:
            assert isinstance(unit, FSDPModule)
            unit.set_gradient_divide_factor(1.0)  # a sum: the loss has the denominator of the whole update
            unit.set_force_sum_reduction_for_comms(True)

    def forward(self, work: Callable[[], T]) -> T:
        """Result of `work`, which may use any part of the model; tensors in it must be in tuples or lists."""
        return work()


def plain(tensor: Tensor) -> Tensor:
    """The undivided tensor, on every rank."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """The undivided tensor without gradient, for a file: on the CPU of the first rank, elsewhere empty."""
    if not isinstance(tensor, DTensor):
        return tensor.detach()
    full = plain(tensor.detach())
    return full.cpu() if ranks.is_first() else full.new_empty(0)


def divided_like(pattern: Tensor, full: Tensor) -> Tensor:
    """A copy of `full`, which every rank has, on the device of `pattern` and divided as it is."""
    full = full.to(pattern.device, copy=True)
    if not isinstance(pattern, DTensor):
        return full
    return distribute_tensor(full, pattern.device_mesh, pattern.placements, src_data_rank=None)


def fill(model: nn.Module, source: nn.Module) -> None:
    """Give the plain `model` the parameters of its divided twin."""
    for parameter, divided in zip(model.parameters(), source.parameters(), strict=True):
        parameter.data = plain(divided.detach())
        torch.autograd.graph.increment_version(parameter)


def empty(model: nn.Module) -> None:
    """Free the parameters of a plain model."""
    for parameter in model.parameters():
        parameter.data = parameter.data.new_empty(0)


def exchange(a: Tensor, b: Tensor) -> None:
    """Exchange the values of two tensors that are divided alike."""
    mine, other = a.detach().to_local(), b.detach().to_local()  # type: ignore[attr-defined]
    kept = mine.clone()
    mine.copy_(other)
    other.copy_(kept)
