"""Small copies of the published file formats."""

import gzip
import io
import struct
import tarfile

import numpy as np


def idx_bytes(array, magic=None):
    head = magic if magic is not None else bytes([0, 0, 8, array.ndim])
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder, images=60000, tests=10000, zipped=False):
    """Four idx files like MNIST's; image k is filled with k % 251, its label is k % 10."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", images), ("t10k", tests)):
        numbers = np.arange(count)
        pixels = np.repeat((numbers % 251).astype(np.uint8), 784).reshape(count, 28, 28)
        for kind, array in (("images-idx3", pixels), ("labels-idx1", (numbers % 10).astype(np.uint8))):
            raw = idx_bytes(array)
            path = folder / f"{name}-{kind}-ubyte{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(raw, 1) if zipped else raw)


def write_npz(path, **changes):
    generator = np.random.default_rng(0)
    arrays = {
        "x_train": generator.integers(0, 256, (30, 32, 32, 3), dtype=np.uint8),
        "y_train": np.arange(30) % 3,
        "x_test": generator.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8),
        "y_test": np.arange(6) % 3,
        "classes": np.array(["ape", "bee", "cow"]),
        **changes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})


def cifar_members(name, count):
    """The binary batches of CIFAR with `count` records for each 10,000: pixel value = record, channel shifts it."""
    labels = 1 if name == "cifar10" else 2
    records = np.zeros((count, labels + 3072), np.uint8)
    records[:, 0] = np.arange(count) % 10
    records[:, labels - 1] = np.arange(count) % (10 if labels == 1 else 100)
    for channel in range(3):
        records[:, labels + 1024 * channel : labels + 1024 * (channel + 1)] = (np.arange(count) % 200)[
            :, None
        ] + channel
    records[:, labels + 1] = 255  # row 0, column 1 of the first channel
    if labels == 1:
        folder = "cifar-10-batches-bin"
        return {
            f"{folder}/{batch}": records.tobytes()
            for batch in (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin")
        }
    names = "\n".join(f"name{number}" for number in range(100)) + "\n"
    folder = "cifar-100-binary"
    return {
        f"{folder}/train.bin": np.tile(records, (5, 1)).tobytes(),
        f"{folder}/test.bin": records.tobytes(),
        f"{folder}/fine_label_names.txt": names.encode(),
    }


def tar_of(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
