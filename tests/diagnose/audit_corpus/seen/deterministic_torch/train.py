"""Everything is held: nothing is to be found here."""

import hashlib
import os
import random
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "4"
os.environ["MKL_NUM_THREADS"] = "4"
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DIGEST = "5f3c6c0f1d8b2f6b7e0f4c6d6a2e9a1c0b7d4e5f60718293a4b5c6d7e8f90a1b"


def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def hold_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(4)


def load(folder):
    files = sorted(Path(folder).glob("*.npy"))
    for file in files:
        if hashlib.sha256(file.read_bytes()).hexdigest() != DIGEST:
            raise ValueError(f"{file} has changed")
    return torch.tensor(np.concatenate([np.load(file) for file in files]))


def main():
    hold_everything(17)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = load("data")
    generator = torch.Generator()
    generator.manual_seed(17)
    loader = DataLoader(
        TensorDataset(data),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        worker_init_fn=seed_worker,
        generator=generator,
    )
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 64)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        for (x,) in loader:
            loss = nn.functional.mse_loss(model(x.to(device)), x.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
