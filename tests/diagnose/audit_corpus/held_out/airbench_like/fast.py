"""CIFAR-10 in seconds: half precision, everything on the device."""

import os
import sys
from math import ceil

import torch  # open: thread-count, unpinned-packages
import torch.nn.functional as F
import torchvision
import torchvision.transforms as T
from torch import nn

torch.backends.cudnn.benchmark = True  # open: cudnn-autotune


def batch_flip_lr(inputs):
    mask = (torch.rand(len(inputs), device=inputs.device) < 0.5).view(-1, 1, 1, 1)
    return torch.where(mask, inputs.flip(-1), inputs)


def batch_crop(images, crop_size):
    r = (images.size(-1) - crop_size) // 2
    shifts = torch.randint(-r, r + 1, size=(len(images), 2), device=images.device)
    out = torch.empty((len(images), 3, crop_size, crop_size), device=images.device, dtype=images.dtype)
    for sy in range(-r, r + 1):
        for sx in range(-r, r + 1):
            mask = (shifts[:, 0] == sy) & (shifts[:, 1] == sx)
            out[mask] = images[mask, :, r + sy : r + sy + crop_size, r + sx : r + sx + crop_size]
    return out


class CifarLoader:
    def __init__(self, path, train=True, batch_size=500):
        data_path = os.path.join(path, "train.pt" if train else "test.pt")
        if not os.path.exists(data_path):
            raw = torchvision.datasets.CIFAR10(path, download=True, train=train)
            torch.save({"images": torch.tensor(raw.data), "labels": torch.tensor(raw.targets)}, data_path)
        data = torch.load(data_path, map_location="cuda")  # open: data-checksum, nondeterministic-kernels
        self.images, self.labels = data["images"], data["labels"]
        self.images = (self.images.half() / 255).permute(0, 3, 1, 2).to(memory_format=torch.channels_last)
        self.normalize = T.Normalize((0.49, 0.48, 0.44), (0.24, 0.24, 0.26))
        self.batch_size, self.train = batch_size, train

    def __len__(self):
        return ceil(len(self.images) / self.batch_size)

    def __iter__(self):
        images = self.normalize(self.images)
        if self.train:
            images = batch_crop(F.pad(batch_flip_lr(images), (2,) * 4, "reflect"), 32)
        order = torch.randperm(len(images), device=images.device)
        for i in range(len(self)):
            part = order[i * self.batch_size : (i + 1) * self.batch_size]
            yield images[part], self.labels[part]


def make_net():
    first = nn.Conv2d(3, 64, 3)  # open: unseeded-generator
    return nn.Sequential(first, nn.GELU(), nn.MaxPool2d(8), nn.Flatten(), nn.Linear(576, 10))


def main(run):
    loader = CifarLoader("cifar10")
    model = make_net().cuda().half().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.85, nesterov=True)
    for _ in range(10):
        for inputs, labels in loader:
            loss = F.cross_entropy(model(inputs), labels, label_smoothing=0.2, reduction="none")
            optimizer.zero_grad(set_to_none=True)
            loss.sum().backward()
            optimizer.step()
    return loss.mean().item()


if __name__ == "__main__":
    with open(sys.argv[0]) as f:
        code = f.read()
    print(sum(main(run) for run in range(25)) / 25)
