import random


def blobs(rng, size):
    label = rng.integers(0, 2, size)
    return rng.normal(label[:, None], 1.0, (size, 4)), label


def names():
    chosen = ["first", "second", "third"]
    random.shuffle(chosen)
    return chosen
