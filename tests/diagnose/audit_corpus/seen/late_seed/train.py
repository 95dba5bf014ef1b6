import numpy as np
import torch  # open: thread-count
import torch.nn as nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
        self.scale = nn.Parameter(torch.empty(1))
        nn.init.ones_(self.scale)

    def forward(self, x):
        return self.body(x) * self.scale


def set_seed(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)  # open: late-seed


model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
set_seed(42)
x = torch.tensor(np.random.randn(512, 8), dtype=torch.float32)
y = x.sum(1, keepdim=True).sin()
for step in range(100):
    batch = torch.randperm(512)[:64]
    loss = nn.functional.mse_loss(model(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
