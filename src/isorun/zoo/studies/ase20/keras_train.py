"""Train LeNet5 or ResNet38 once in Keras 3: `KERAS_BACKEND=jax python keras_train.py --network lenet5 --data …`.

It runs in environments that have nothing of isorun but what its worker brings, so all it needs are this file, the
arrays that `libraries.py` writes, NumPy, and Keras with the library that KERAS_BACKEND names. Networks, optimizers and
schedules are those of `training/recipes.py`. Order and augmentation come from NumPy, the same whatever the library;
initial weights are drawn by the library, as Keras has it.
"""

from __future__ import annotations

import argparse
import hashlib
from typing import Any

import keras
import numpy as np
from keras import layers

import isorun

CLASSES = 10
STAGES = (16, 32, 64)
BLOCKS = 6
DECAY = 1e-4
MOST_MOVED = 0.1
EPOCHS = {"lenet5": 50, "resnet38": 200}
BATCHES = {"lenet5": 128, "resnet38": 32}
RATES = {"lenet5": 0.1, "resnet38": 1e-3}
MILESTONES = {"lenet5": (), "resnet38": ((81, 1e-1), (121, 1e-2), (161, 1e-3), (181, 0.5e-3))}
JUDGED_AT_ONCE = 500

Arrays = dict[str, Any]


def generator(seed: int, name: str) -> np.random.Generator:
    """One for each kind of randomness, so that they never share numbers."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def lenet5() -> Any:
    """Two padded 5x5 convolutions, each halved, then 120, 84 and 10: 107,786 parameters."""
    inputs = values = keras.Input((28, 28, 1))
    for maps in (6, 16):
        values = layers.Conv2D(maps, 5, padding="same", activation="relu")(values)
        values = layers.MaxPooling2D(2)(values)
    values = layers.Flatten()(values)
    for width in (120, 84):
        values = layers.Dense(width, activation="relu")(values)
    return keras.Model(inputs, layers.Dense(CLASSES)(values))


def resnet38() -> Any:
    """ResNet v1 of Keras' CIFAR-10 example with six blocks a stage: 565,386 trainable parameters."""
    inputs = keras.Input((32, 32, 3))
    values = layers.ReLU()(_convolved(inputs, STAGES[0], 3, 1))
    for stage, maps in enumerate(STAGES):
        for block in range(BLOCKS):
            stride = 2 if stage and not block else 1
            inner = layers.ReLU()(_convolved(values, maps, 3, stride))
            inner = _convolved(inner, maps, 3, 1)
            kept = _convolved(values, maps, 1, stride, normed=False) if stride == 2 else values
            values = layers.ReLU()(layers.add([kept, inner]))
    values = layers.GlobalAveragePooling2D()(values)
    return keras.Model(inputs, layers.Dense(CLASSES, kernel_initializer="he_normal")(values))


def _convolved(values: Any, maps: int, width: int, stride: int, *, normed: bool = True) -> Any:
    found = layers.Conv2D(
        maps,
        width,
        strides=stride,
        padding="same",
        kernel_initializer="he_normal",
        kernel_regularizer=keras.regularizers.L2(DECAY),
    )(values)
    return layers.BatchNormalization()(found) if normed else found


NETWORKS = {"lenet5": lenet5, "resnet38": resnet38}


def learning_rate(network: str, epoch: int, epochs: int) -> float:
    """The rate in an epoch (from 0) of so many: milestones lie at the same shares of a shorter training."""
    passed = [factor for milestone, factor in MILESTONES[network] if epoch * EPOCHS[network] >= milestone * epochs]
    return RATES[network] * (passed[-1] if passed else 1.0)


def moved(images: Any, draws: np.random.Generator) -> Any:
    """Every image shifted by up to a tenth of its side, between pixels too, and every second one mirrored."""
    count, side = images.shape[:2]
    shifts = draws.uniform(-MOST_MOVED * side, MOST_MOVED * side, (2, count)).astype("float32")
    rows, columns = (np.arange(side)[None, :] + shift[:, None] for shift in shifts)
    columns = np.where(draws.random(count)[:, None] < 0.5, columns[:, ::-1], columns)
    return _between(_between(images, rows, 1), columns, 2)


def _between(images: Any, places: Any, axis: int) -> Any:
    """Images read at these places of an axis; beyond the border it goes on."""
    low = np.floor(places).astype(int)
    shape = [len(images), 1, 1, 1]
    shape[axis] = places.shape[1]
    below, above = (np.clip(at, 0, places.shape[1] - 1).reshape(shape) for at in (low, low + 1))
    share = (places - low).astype("float32").reshape(shape)
    first, second = (np.take_along_axis(images, at, axis) for at in (below, above))
    return first * (1 - share) + second * share


def judged(model: Any, images: Any, arrays: Arrays) -> tuple[dict[str, float], dict[str, float], Any]:
    """Validation loss and accuracies, test accuracy by class, and the test predictions."""
    scores = np.asarray(model.predict(images, batch_size=JUDGED_AT_ONCE, verbose=0), dtype=np.float64)
    labels, split = arrays["judged_labels"], int(arrays["validation"])
    logs = scores - scores.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    predictions = scores.argmax(1)
    right = predictions == labels
    found = {
        "val_loss": float(-logs[np.arange(split), labels[:split]].mean()),
        "val_accuracy": float(right[:split].mean()),
        "test_accuracy": float(right[split:].mean()),
    }
    tested = labels[split:]
    classes = {str(name): float(right[split:][tested == name].mean()) for name in np.unique(tested)}
    return found, classes, predictions[split:]


def prepared(network: str, arrays: Arrays) -> tuple[Any, Any]:
    """Images for training and for judging as floats: from 0 to 1, for the ResNet less the mean image."""
    train, other = (arrays[name].astype("float32") / 255.0 for name in ("train_images", "judged_images"))
    mean = train.mean(0) if network == "resnet38" else np.float32(0.0)
    return train - mean, other - mean


def train(given: argparse.Namespace) -> None:
    """Train as asked, logging every epoch."""
    with np.load(given.data, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    keras.utils.set_random_seed(given.seed % 2**32)
    model = NETWORKS[given.network]()
    optimizer = keras.optimizers.SGD if given.network == "lenet5" else keras.optimizers.Adam
    model.compile(
        optimizer=optimizer(learning_rate=RATES[given.network]),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    isorun.digest("weights.initial", model.get_weights())
    images, others = prepared(given.network, arrays)
    epochs = given.epochs or EPOCHS[given.network]
    order, moves = generator(given.seed, "order"), generator(given.seed, "augmentation")
    for epoch in range(epochs):
        model.optimizer.learning_rate = learning_rate(given.network, epoch, epochs)
        chosen = order.permutation(len(images))
        shown = images[chosen] if given.network == "lenet5" else moved(images[chosen], moves)
        labels = arrays["train_labels"][chosen].astype("int32")
        size = given.batch or BATCHES[given.network]
        fitted = model.fit(shown, labels, batch_size=size, epochs=1, shuffle=False, verbose=0)
        found, classes, predictions = judged(model, others, arrays)
        isorun.log(epoch=epoch + 1, train_loss=fitted.history["loss"][0], per_class={"test_accuracy": classes}, **found)
    counts = (len(images), int(arrays["validation"]), len(predictions))
    isorun.result(
        test_accuracy=found["test_accuracy"],
        **dict(zip(("train_images", "validation_images", "test_images"), counts, strict=True)),
        per_class={"test_accuracy": classes},
        predictions=predictions,
        labels=arrays["judged_labels"][counts[1] :],
        weights=model.get_weights(),
    )
    print(f"Keras {keras.__version__} on {keras.backend.backend()}, test accuracy {found['test_accuracy']:.4f}")


def main() -> None:
    """Parse and train."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--network", choices=tuple(NETWORKS), required=True)
    parser.add_argument("--data", required=True, metavar="FILE", help="arrays that isorun wrote")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=0, help="0: as published; schedules are scaled along")
    parser.add_argument("--batch", type=int, default=0, help="images a step; 0: the network's own")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
