"""Train a LeNet on the 8x8 digits of scikit-learn: an ordinary PyTorch script with two lines for isorun."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

import isorun

TRAIN, VALIDATION = 1097, 350  # the rest, 350 images, is the test set


class LeNet(nn.Module):
    """Two convolutions, two dense layers, dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dense = nn.Linear(16 * 2 * 2, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of a batch of images."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.out(F.dropout(F.relu(self.dense(x)), 0.25, self.training))


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """Images scaled to [0, 1] and their labels."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    return images, torch.tensor(digits.target)


@torch.no_grad()
def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float, torch.Tensor]:
    """Loss, accuracy and predictions."""
    model.eval()
    scores = model(images)
    predicted = scores.argmax(1)
    return F.cross_entropy(scores, labels).item(), (predicted == labels).float().mean().item(), predicted


def main() -> None:
    """Train, and log every epoch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()

    images, labels = load()
    split = (TRAIN, VALIDATION, len(labels) - TRAIN - VALIDATION)
    (train_x, val_x, test_x), (train_y, val_y, test_y) = images.split(split), labels.split(split)
    model = LeNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    for epoch in range(1, options.epochs + 1):
        model.train()
        for batch in torch.randperm(TRAIN).split(32):
            optimizer.zero_grad()
            F.cross_entropy(model(train_x[batch]), train_y[batch]).backward()
            optimizer.step()
        val_loss, val_acc, _ = evaluate(model, val_x, val_y)
        _, test_acc, predicted = evaluate(model, test_x, test_y)
        isorun.log(epoch=epoch, val_loss=val_loss, val_acc=val_acc, test_acc=test_acc, predictions={"test": predicted})
    isorun.result(test_acc=test_acc, predictions={"test": predicted}, labels={"test": test_y})
    print(f"test accuracy: {test_acc:.4f}")


if __name__ == "__main__":
    main()
