"""Started by torchrun: one process a device."""

import os

import torch  # open: thread-count
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from shards import ShardedImages


def setup():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # open: nondeterministic-kernels


def build():
    first = nn.Conv2d(3, 32, 3)  # open: unseeded-generator
    return nn.Sequential(first, nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))


def main():
    setup()
    rank = int(os.environ["LOCAL_RANK"])
    dataset = ShardedImages("/data/shards")
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=128, sampler=sampler, num_workers=8, pin_memory=True)
    model = DDP(build().cuda(rank), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.cuda(rank)), labels.cuda(rank))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
