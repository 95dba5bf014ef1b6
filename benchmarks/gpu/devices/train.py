"""Fashion-MNIST by a small network, on the device that is there: what the study beside it varies."""

import argparse
import gzip
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn

import isorun


def read(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images and labels as the data set's own files hold them."""
    folder = Path(os.environ.get("ISORUN_DATA", "gpu-data")) / "fashion-mnist"
    images = gzip.decompress((folder / f"{kind}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / f"{kind}-labels-idx1-ubyte.gz").read_bytes())
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 1, 28, 28).astype(np.float32) / 255
    return torch.from_numpy(pixels), torch.from_numpy(np.frombuffer(labels, np.uint8, offset=8).astype(np.int64))


def network(name: str) -> nn.Module:
    if name == "dense":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )
    layers = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Linear(128, 10))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=("dense", "convolutional"), required=True)
    parser.add_argument("--images", type=int, default=12_000)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    (images, labels), (test_images, test_labels) = read("train"), read("t10k")
    images, labels = images[: options.images].to(device), labels[: options.images].to(device)
    model = network(options.network).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        for batch in torch.randperm(len(images)).split(128):
            loss = nn.functional.cross_entropy(model(images[batch.to(device)]), labels[batch.to(device)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(test_images.to(device)).argmax(1).cpu() == test_labels).float().mean().item()
    isorun.log(test_acc=right)
    isorun.digest("weights", model)


if __name__ == "__main__":
    main()
