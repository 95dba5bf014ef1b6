"""The training loop: epochs, evaluation on the development and test sets, early stopping by development MAP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.nn import functional

from isorun.zoo.models.sm_cnn import HIDDEN, SmCnn, sm_cnn
from isorun.zoo.studies.tacl18.ranking import Effectiveness, effectiveness
from isorun.zoo.studies.tacl18.training.batches import plan_epoch, plan_evaluation
from isorun.zoo.studies.tacl18.training.descent import GradientDescent
from isorun.zoo.studies.tacl18.training.randomness import DeviceDropout, SharedDropout, generator
from isorun.zoo.studies.tacl18.training.settings import Settings
from isorun.zoo.studies.tacl18.training.tensors import SplitTensors, batches

__all__ = ["Epoch", "Material", "Training", "train"]

_DROPOUTS: Final[dict[str, type[SharedDropout | DeviceDropout]]] = {"shared": SharedDropout, "device": DeviceDropout}


@dataclass(frozen=True, slots=True)
class Material:
    """What is trained on: three splits and the table of word vectors, all on one device."""

    train: SplitTensors
    dev: SplitTensors
    test: SplitTensors
    table: Any


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch that is over. scores: of the test pairs, in the order of the file."""

    number: int
    train_loss: float
    dev: Effectiveness
    test: Effectiveness
    scores: Any


@dataclass(frozen=True, slots=True)
class Training:
    """The network with the weights of the best epoch, and how many epochs there were."""

    network: SmCnn
    best: Epoch
    epochs: int


def train(
    material: Material, settings: Settings, started: Callable[[SmCnn], None], report: Callable[[Epoch], None]
) -> Training:
    """Train until the epochs are over or patience is. started: given the network before the first step."""
    draws = generator(settings.seed_of("weights"), "weights")
    network = sm_cnn(int(material.table.shape[1]), draws).to(material.table.device)
    started(network)
    best, weights, number = None, None, 0
    for epoch in _epochs(network, material, settings):
        report(epoch)
        number = epoch.number
        if best is None or epoch.dev.mean_ap - best.dev.mean_ap > settings.margin:
            best, weights = epoch, {name: value.clone() for name, value in network.state_dict().items()}
        elif number - best.number >= settings.patience:
            break
    assert best is not None
    network.load_state_dict(weights)
    return Training(network, best, number)


def _epochs(network: SmCnn, material: Material, settings: Settings) -> Iterator[Epoch]:
    descent = GradientDescent(network.parameters(), settings.rate * settings.batch_size, settings.weight_decay)
    order = generator(settings.seed_of("order"), "order")
    dropout = _DROPOUTS[settings.dropout](settings.seed_of("dropout"), material.table.device)
    for number in range(1, settings.epochs + 1):
        plan = plan_epoch(order, *material.train.lengths, settings.batch_size, settings.order)
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
        yield Epoch(number, float(losses) / material.train.pairs, dev, test, test_scores)


@torch.no_grad()  # type: ignore[untyped-decorator]
def _evaluated(network: SmCnn, split: SplitTensors, material: Material) -> tuple[Effectiveness, Any]:
    """How well the network ranks a split, and the probability that it gives to each pair."""
    plan = plan_evaluation(*split.lengths)
    found = [network(batch.question, batch.answer, batch.features) for batch in batches(split, plan, material.table)]
    answering = functional.log_softmax(torch.cat(found), dim=1)[:, 1].exp().cpu().numpy()
    scores = answering.copy()
    scores[plan.order] = answering
    return effectiveness(split.judged, scores), scores
