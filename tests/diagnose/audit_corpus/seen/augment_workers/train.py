import os

import numpy as np
import torch  # open: thread-count
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, size):
        self.x = torch.linspace(0, 1, size)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, place):
        return self.x[place] + float(np.random.normal(0, 0.1)), self.x[place] ** 2


np.random.seed(5)
torch.manual_seed(5)
loader = DataLoader(Noisy(4096), batch_size=64, shuffle=True, num_workers=os.cpu_count())  # open: loader-workers
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x.float()[:, None]), y.float()[:, None])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
