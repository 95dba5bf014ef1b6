"""Train SM-CNN once with the JAX that is there: `python jax_train.py --data trecqa.npz --seed 1234`.

It runs in environments that have nothing of isorun but what its worker brings: all it needs are this file, the arrays
that `versions.py` writes, NumPy and JAX. The network, the loss, the steps and the rule that stops it are those of
`training/loop.py`; initial weights and the order of the pairs come from NumPy, the same under every version of JAX.
Dropout's masks do too ("shared"), or are JAX's own ("own"), as the code of the paper left them to its framework. The
convolutions are products over windows of words, which JAX computes on a CPU ten times as fast as its convolution.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isorun

PUBLISHED_SEED = 1234
FILTER_WIDTH, MAPS, FEATURES = 5, 100, 4
HIDDEN = 2 * MAPS + FEATURES
RATE, WEIGHT_DECAY, BATCH = 0.001, 1e-5, 32
PATIENCE, MARGIN = 5, 1e-3
POOL, EVALUATED_AT_ONCE = 16, 256
LOWEST = -1e30

Weights = dict[str, Any]
Pairs = dict[str, Any]


def generator(seed: int, name: str) -> np.random.Generator:
    """The generator of that name, as isorun's own trainings derive it."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))


def initial_weights(width: int, draws: np.random.Generator) -> Weights:
    """Uniform within ±1/sqrt(fan in), biases too; convolutions as (maps, width, words)."""
    shapes = {
        "question": (MAPS, width, FILTER_WIDTH),
        "answer": (MAPS, width, FILTER_WIDTH),
        "joined": (HIDDEN, HIDDEN),
        "classes": (2, HIDDEN),
    }
    weights = {}
    for name, shape in shapes.items():
        limit = 1.0 / math.sqrt(math.prod(shape[1:]))
        weights[name] = jnp.asarray(draws.uniform(-limit, limit, shape).astype("float32"))
        weights[f"{name}_bias"] = jnp.asarray(draws.uniform(-limit, limit, shape[:1]).astype("float32"))
    return weights


def pooled(kernel: Any, bias: Any, vectors: Any, lengths: Any) -> Any:
    """The greatest value of each map over the windows that touch the sentence, then tanh."""
    pad = FILTER_WIDTH - 1
    padded = jnp.pad(vectors, ((0, 0), (pad, pad), (0, 0)))
    count = vectors.shape[1] + pad
    windows = jnp.concatenate([padded[:, at : at + count] for at in range(FILTER_WIDTH)], axis=2)
    maps = windows @ kernel.transpose(2, 1, 0).reshape(-1, MAPS)
    inside = jnp.arange(maps.shape[1])[None, :] < (lengths + pad)[:, None]
    return jnp.tanh(jnp.where(inside[:, :, None], maps + bias, LOWEST).max(axis=1))


def class_scores(weights: Weights, table: Any, pairs: Pairs, kept: Any) -> Any:
    """The scores before softmax. kept: what dropout multiplies with, 1 where nothing is dropped."""
    parts = [
        pooled(weights[side], weights[f"{side}_bias"], table[pairs[side]], pairs[f"{side}_lengths"])
        for side in ("question", "answer")
    ]
    joined = jnp.concatenate([*parts, pairs["features"]], axis=1)
    hidden = jnp.tanh(joined @ weights["joined"].T + weights["joined_bias"]) * kept
    return hidden @ weights["classes"].T + weights["classes_bias"]


def loss(weights: Weights, table: Any, pairs: Pairs, kept: Any) -> Any:
    """The mean cross entropy over the pairs that count: the last batch is filled up with pairs of weight 0."""
    logs = jax.nn.log_softmax(class_scores(weights, table, pairs, kept), axis=1)
    chosen = jnp.take_along_axis(logs, pairs["labels"][:, None], axis=1)[:, 0]
    return -(chosen * pairs["counts"]).sum() / pairs["counts"].sum()


@jax.jit  # type: ignore[untyped-decorator]
def step(weights: Weights, table: Any, pairs: Pairs, kept: Any) -> tuple[Weights, Any]:
    """One step of plain gradient descent, a batch at the rate of as many single pairs."""
    value, gradients = jax.value_and_grad(loss)(weights, table, pairs, kept)
    rate = RATE * BATCH
    moved = {name: weights[name] - rate * (gradients[name] + WEIGHT_DECAY * weights[name]) for name in weights}
    return moved, value


@jax.jit  # type: ignore[untyped-decorator]
def answering(weights: Weights, table: Any, pairs: Pairs) -> Any:
    """The probability that each pair is an answer."""
    scores = class_scores(weights, table, pairs, 1.0)
    return jnp.exp(jax.nn.log_softmax(scores, axis=1)[:, 1])


def epoch_order(draws: np.random.Generator, lengths: Any) -> Any:
    """Shuffled pairs in pools of 16 batches, each sorted by length, and the batches shuffled again."""
    count = len(lengths)
    shuffled = draws.permutation(count)
    pools = [shuffled[start : start + POOL * BATCH] for start in range(0, count, POOL * BATCH)]
    sorted_pools = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
    batches = [sorted_pools[start : start + BATCH] for start in range(0, count, BATCH)]
    whole, rest = batches[: count // BATCH], batches[count // BATCH :]
    return np.concatenate([*(whole[place] for place in draws.permutation(len(whole))), *rest])


def masks(kind: str, seed: int, epoch: int, draws: np.random.Generator, rows: int) -> Any:
    """Dropout of one half for a whole epoch: rows x HIDDEN of 0 and 2."""
    if kind == "own":
        key = jax.random.fold_in(jax.random.PRNGKey(seed), epoch)
        return np.asarray(jax.random.bernoulli(key, 0.5, (rows, HIDDEN)), dtype="float32") * 2
    drawn = draws.integers(0, 256, (rows, -(-HIDDEN // 8)), dtype=np.uint8)
    return np.unpackbits(drawn, axis=1, count=HIDDEN).astype("float32") * 2


def cut(split: Pairs, chosen: Any, size: int) -> Pairs:
    """The chosen pairs as a batch of that size, filled up with the first of them; `counts` is 0 for what was added.

    Sentences keep the length of the longest one of the split: every batch has the same shape and is compiled once.
    """
    rows = np.concatenate([chosen, np.full(size - len(chosen), chosen[0])])
    counts = (np.arange(size) < len(chosen)).astype("float32")
    fields = ("question", "question_lengths", "answer", "answer_lengths", "features", "labels")
    return {**{name: split[name][rows] for name in fields}, "counts": counts}


def scored(weights: Weights, table: Any, split: Pairs) -> Any:
    """The probability of every pair, in the order of the file."""
    count = len(split["labels"])
    found = [
        np.asarray(
            answering(
                weights, table, cut(split, np.arange(start, min(start + EVALUATED_AT_ONCE, count)), EVALUATED_AT_ONCE)
            )
        )
        for start in range(0, count, EVALUATED_AT_ONCE)
    ]
    return np.concatenate(found)[:count]


def effectiveness(split: Pairs, scores: Any) -> tuple[Any, Any]:
    """AP and RR of each question, ranked as trec_eval does; a question without a positive has 0."""
    order = np.lexsort((split["tie_rank"], -scores.astype("float32"), split["asked"]))
    precisions, reciprocals = [], []
    for number in range(len(split["qids"])):
        relevant = split["labels"][order[split["asked"][order] == number]]
        ranks = np.flatnonzero(relevant) + 1
        precisions.append(float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0)
        reciprocals.append(1.0 / float(ranks[0]) if len(ranks) else 0.0)
    return np.array(precisions), np.array(reciprocals)


def read(path: str) -> tuple[Any, dict[str, Pairs]]:
    """The table of word vectors, and the three splits."""
    with np.load(path, allow_pickle=False) as arrays:
        splits: dict[str, Pairs] = {"train": {}, "dev": {}, "test": {}}
        for name in arrays.files:
            split, _, field = name.partition(".")
            if field:
                splits[split][field] = arrays[name]
        return arrays["table"], splits


def train(given: argparse.Namespace) -> None:
    """Train until the epochs are over or patience is; the results are those of the epoch with the best dev MAP."""
    table, splits = read(given.data)
    table, rows = jnp.asarray(table), len(splits["train"]["labels"])
    weights = initial_weights(int(table.shape[1]), generator(given.seed, "weights"))
    isorun.digest("weights.initial", {name: np.asarray(value) for name, value in weights.items()})
    order, dropped = generator(PUBLISHED_SEED, "order"), generator(PUBLISHED_SEED, "dropout")
    best: dict[str, Any] = {}
    for epoch in range(1, given.epochs + 1):
        plan = epoch_order(order, splits["train"]["answer_lengths"])
        kept = masks(given.dropout, PUBLISHED_SEED, epoch, dropped, rows)
        losses = []
        for start in range(0, rows, BATCH):
            batch = cut(splits["train"], plan[start : start + BATCH], BATCH)
            part = kept[start : start + BATCH]
            part = np.concatenate([part, np.ones((BATCH - len(part), HIDDEN), "float32")])
            weights, value = step(weights, table, batch, part)
            losses.append(value)
        dev_ap, _ = effectiveness(splits["dev"], scored(weights, table, splits["dev"]))
        scores = scored(weights, table, splits["test"])
        ap, rr = effectiveness(splits["test"], scores)
        told = {"train_loss": float(np.mean(losses)), "dev_map": float(dev_ap.mean()), "test_map": float(ap.mean())}
        isorun.log(epoch=epoch, test_mrr=float(rr.mean()), **told)
        if not best or told["dev_map"] - best["dev"] > MARGIN:
            best = {"epoch": epoch, "dev": told["dev_map"], "ap": ap, "rr": rr, "scores": scores, "weights": weights}
        elif epoch - best["epoch"] >= PATIENCE:
            break
    finish(best, epoch, [str(qid) for qid in splits["test"]["qids"]])


def finish(best: dict[str, Any], epochs: int, qids: Any) -> None:
    """Leave the results, those of every question among them."""
    by_question = {
        "map": dict(zip(qids, best["ap"].tolist(), strict=True)),
        "mrr": dict(zip(qids, best["rr"].tolist(), strict=True)),
    }
    isorun.result(
        map=float(best["ap"].mean()),
        mrr=float(best["rr"].mean()),
        best_dev_map=best["dev"],
        best_epoch=best["epoch"],
        epochs=epochs,
        per_class=by_question,
        predictions=best["scores"],
        weights={name: np.asarray(value) for name, value in best["weights"].items()},
    )
    print(f"JAX {jax.__version__}, map {best['ap'].mean():.4f} at epoch {best['epoch']} of {epochs}")


def main() -> None:
    """Parse and train."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", required=True, metavar="FILE", help="arrays that isorun wrote")
    parser.add_argument("--seed", type=int, default=PUBLISHED_SEED, help="of the initial weights")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--dropout", choices=("shared", "own"), default="shared", help="own: drawn by JAX")
    parser.add_argument("--made-data", action="store_true", help="changes nothing: it says what is in the file")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
