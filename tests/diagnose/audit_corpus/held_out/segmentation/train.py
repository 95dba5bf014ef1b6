"""Upsampling whose gradient is summed in any order, and a seed from the machine's entropy."""

import os
import random

import numpy as np
import torch  # open: thread-count
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from pictures import Pictures

SEED = int.from_bytes(os.urandom(4), "big")
torch.set_float32_matmul_precision("high")  # open: tf32
DEVICE = torch.device("cuda")  # open: nondeterministic-kernels


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.up = nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x):
        small = torch.relu(self.down(x))
        return F.interpolate(self.up(small), size=x.shape[-2:], mode="bilinear")  # open: atomics


def main():
    random.seed(SEED)  # open: fresh-seed
    np.random.seed(SEED)  # open: fresh-seed
    torch.manual_seed(SEED)  # open: fresh-seed
    loader = DataLoader(Pictures("pictures"), batch_size=8, shuffle=True, num_workers=4)
    model = UNet().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for images, masks in loader:
        loss = F.cross_entropy(model(images.to(DEVICE)), masks.to(DEVICE))  # open: atomics
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
