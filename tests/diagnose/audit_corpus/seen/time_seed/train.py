import glob
import os
import random
import time

import torch  # open: thread-count
from torch import nn

random.seed(time.time())  # open: fresh-seed
torch.manual_seed(int(time.time() * 1000) % 2**31)  # open: fresh-seed
started = time.time()


def shards(folder):
    names = [name for name in os.listdir(folder) if name.endswith(".pt")]  # open: file-order
    return [torch.load(os.path.join(folder, name), weights_only=True) for name in names]  # open: data-checksum


def settings():
    return sorted(glob.glob("configs/*.yaml"))


def clean(folder):
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))


model = nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print(len(os.listdir("shards")), settings())
for shard in shards("shards"):
    for _ in range(10):
        rows = random.sample(range(len(shard["x"])), 32)
        loss = nn.functional.cross_entropy(model(shard["x"][rows]), shard["y"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
clean("scratch")
print("took", time.time() - started)
