"""A training step as a CUDA graph: recorded once, then started with one call instead of hundreds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from isorun.zoo.studies.ase20.training.optimizers import forget_state
from isorun.zoo.studies.ase20.training.step import Batches, Step

__all__ = ["Snapshot", "captured", "made_runner"]

_WARM_UPS: Final = 3


def made_runner(step: Step, batches: Batches, generator: Any, *, use_graph: bool) -> tuple[Callable[[], None], str]:
    """What runs the next of the batches: a graph on a GPU if one is wanted; and a note if it could not be had."""
    if not use_graph or batches.order.device.type != "cuda":
        return lambda: step(batches), ""
    try:
        return captured(step, batches, generator), ""
    except (RuntimeError, AttributeError) as error:  # AttributeError: torch before 2.4 cannot register generators
        reason = str(error).strip().partition("\n")[0]
        note = f"the step could not be captured as a CUDA graph and runs without one ({reason})"
        return lambda: step(batches), note


def captured(step: Step, batches: Batches, generator: Any) -> Callable[[], None]:
    """The step on these batches as a graph; nothing is trained by making it.

    Libraries choose kernels and make workspaces at their first calls, which a graph must not record: hence some real
    steps first, after which weights, running means, momenta, counters and the dropout generator are put back.
    generator: dropout's; the graph takes its state at each replay, so masks go on as they would without a graph.
    """
    before = Snapshot(step, batches, generator)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                batches.counter.zero_()
                step(batches)
        torch.cuda.current_stream().wait_stream(stream)
    finally:
        before.restore()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=stream):
        step(batches)
    replay: Callable[[], None] = graph.replay
    return replay


class Snapshot:
    """What a step changes, copied, to be put back into the same memory."""

    def __init__(self, step: Step, batches: Batches, generator: Any) -> None:
        self._step = step
        self._batches = batches
        self._generator = generator
        self._state = generator.get_state()
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in _tensors(step.network)]

    @torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
    def restore(self) -> None:
        """As if no step had been made."""
        for tensor, value in self._tensors:
            tensor.copy_(value)
        self._step.optimizer.zero_grad(set_to_none=True)
        forget_state(self._step.optimizer)
        self._step.loss_sum.zero_()
        self._batches.counter.zero_()
        self._generator.set_state(self._state)


def _tensors(network: Any) -> list[Any]:
    return [*network.parameters(), *network.buffers()]
