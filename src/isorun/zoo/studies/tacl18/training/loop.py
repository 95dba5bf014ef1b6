"""The training loop: epochs, evaluation on the development and test sets, early stopping by development MAP.

Dropout is drawn by numpy on the CPU: runs with the same seed start, shuffle and drop alike on every device, thread
count and CPU path, and differ by their arithmetic alone. Frameworks draw it on the device instead; `DeviceDropout` does
so too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch.nn import functional

from isorun.zoo.generators import hashed_generator
from isorun.zoo.models.sm_cnn import HIDDEN, SmCnn, sm_cnn
from isorun.zoo.studies.tacl18.ranking import Effectiveness, effectiveness
from isorun.zoo.studies.tacl18.training.options import Options
from isorun.zoo.studies.tacl18.training.tensors import PairTensors, SplitTensors, batches, plan_epoch, plan_evaluation

__all__ = ["DeviceDropout", "GradientDescent", "SharedDropout", "TrainedEpoch", "TrainedSmCnn", "dropout_kept", "train"]


class GradientDescent:
    """Computes what `torch.optim.SGD` does without momentum, bit for bit, and spends less around it.

    Where a step is one pair, torch's own bookkeeping for eight small tensors takes an eighth of the time.
    """

    def __init__(self, parameters: Iterable[Any], rate: float, weight_decay: float) -> None:
        self._parameters = list(parameters)
        self._rate = rate
        self._weight_decay = weight_decay

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self) -> None:
        """Follow the gradients that there are, one for every parameter, and leave none behind."""
        gradients = [parameter.grad for parameter in self._parameters]
        torch._foreach_add_(gradients, self._parameters, alpha=self._weight_decay)
        torch._foreach_add_(self._parameters, gradients, alpha=-self._rate)
        for parameter in self._parameters:
            parameter.grad = None


def dropout_kept(draws: np.random.Generator, rows: int, columns: int) -> Any:
    """Dropout of one half as what to multiply with: rows x columns of 0 and 2 (uint8), a drawn bit each."""
    drawn = draws.integers(0, 256, (rows, -(-columns // 8)), dtype=np.uint8)
    return np.unpackbits(drawn, axis=1, count=columns) * np.uint8(2)


class SharedDropout:
    """What dropout keeps in each epoch, the same on every device."""

    def __init__(self, seed: int, device: Any) -> None:
        self._draws = hashed_generator(seed, "dropout")
        self._device = device

    def epoch(self, rows: int, columns: int) -> Any:
        """Rows x columns of 0 and 2 on the device."""
        return torch.from_numpy(dropout_kept(self._draws, rows, columns)).to(self._device).float()


class DeviceDropout:
    """What dropout keeps in each epoch, drawn by torch's own generator of the device."""

    def __init__(self, seed: int, device: Any) -> None:
        self._draws = torch.Generator(device)
        self._draws.manual_seed(int(hashed_generator(seed, "dropout").integers(0, 2**31)))
        self._device = device

    def epoch(self, rows: int, columns: int) -> Any:
        """Rows x columns of 0 and 2 on the device."""
        return torch.randint(0, 2, (rows, columns), generator=self._draws, device=self._device).float() * 2


_DROPOUTS: Final[dict[str, type[SharedDropout | DeviceDropout]]] = {"shared": SharedDropout, "device": DeviceDropout}


@dataclass(frozen=True, slots=True)
class TrainedEpoch:
    """An epoch that is over. scores: of the test pairs, in the order of the file."""

    number: int
    train_loss: float
    dev: Effectiveness
    test: Effectiveness
    scores: Any


@dataclass(frozen=True, slots=True)
class TrainedSmCnn:
    """The network with the weights of the best epoch, and how many epochs there were."""

    network: SmCnn
    best: TrainedEpoch
    epochs: int


def train(
    material: PairTensors, options: Options, started: Callable[[SmCnn], None], report: Callable[[TrainedEpoch], None]
) -> TrainedSmCnn:
    """Train until the epochs are over or patience is. started: given the network before the first step."""
    draws = hashed_generator(options.seed_of("weights"), "weights")
    network = sm_cnn(int(material.table.shape[1]), draws).to(material.table.device)
    started(network)
    best, weights, number = None, None, 0
    for epoch in _epochs(network, material, options):
        report(epoch)
        number = epoch.number
        if best is None or epoch.dev.mean_ap - best.dev.mean_ap > options.margin:
            best, weights = epoch, {name: value.clone() for name, value in network.state_dict().items()}
        elif number - best.number >= options.patience:
            break
    assert best is not None
    network.load_state_dict(weights)
    return TrainedSmCnn(network, best, number)


def _epochs(network: SmCnn, material: PairTensors, options: Options) -> Iterator[TrainedEpoch]:
    descent = GradientDescent(network.parameters(), options.rate * options.batch_size, options.weight_decay)
    order = hashed_generator(options.seed_of("order"), "order")
    dropout = _DROPOUTS[options.dropout](options.seed_of("dropout"), material.table.device)
    for number in range(1, options.epochs + 1):
        plan = plan_epoch(order, *material.train.lengths, options.batch_size, options.order)
        kept = dropout.epoch(material.train.pairs, HIDDEN)
        losses = torch.zeros((), device=material.table.device)
        for batch in batches(material.train, plan, material.table):
            scores = network(batch.question, batch.answer, batch.features, kept[batch.positions])
            loss = functional.cross_entropy(scores, batch.labels)
            loss.backward()
            descent.step()
            losses += loss.detach() * len(batch.labels)
        (dev, _), (test, test_scores) = (
            _evaluated(network, split, material) for split in (material.dev, material.test)
        )
        yield TrainedEpoch(number, float(losses) / material.train.pairs, dev, test, test_scores)


@torch.no_grad()  # type: ignore[untyped-decorator]
def _evaluated(network: SmCnn, split: SplitTensors, material: PairTensors) -> tuple[Effectiveness, Any]:
    """How well the network ranks a split, and the probability that it gives to each pair."""
    plan = plan_evaluation(*split.lengths)
    found = [network(batch.question, batch.answer, batch.features) for batch in batches(split, plan, material.table)]
    answering = functional.log_softmax(torch.cat(found), dim=1)[:, 1].exp().cpu().numpy()
    scores = answering.copy()
    scores[plan.order] = answering
    return effectiveness(split.judged, scores), scores
