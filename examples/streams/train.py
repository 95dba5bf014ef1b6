"""Train a small CNN on the 8x8 digits of scikit-learn: an ordinary PyTorch script that knows nothing of streams.

Its random numbers decide four things: initial weights, the order of the data, dropout, and shifted and noisy images.
"""

import argparse
import random

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

TRAIN = 1000


class Digits(Dataset):
    """Images and labels; in training each image is shifted by up to a pixel, and has noise."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = self.images[index].roll((random.randint(-1, 1), random.randint(-1, 1)), (1, 2))
        return image + 0.1 * torch.randn(image.shape), self.labels[index]


class Network(nn.Module):
    """Two convolutions and two dense layers, dropout between these."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dense = nn.Linear(16 * 2 * 2, 64)
        self.dropout = nn.Dropout(0.25)
        self.out = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of a batch of images."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.out(self.dropout(F.relu(self.dense(x))))


def main() -> None:
    """Train, and print the accuracy and the loss on images that were not trained on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    random.seed(options.seed)

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    loader = DataLoader(Digits(images[:TRAIN], labels[:TRAIN]), batch_size=32, shuffle=True)
    for _ in range(options.epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(images[TRAIN:])
    test_acc = (scores.argmax(1) == labels[TRAIN:]).float().mean().item()
    print(f"test_acc: {test_acc:.6f}  test_loss: {F.cross_entropy(scores, labels[TRAIN:]).item():.6f}")


if __name__ == "__main__":
    main()
