"""Messages along edges are summed with atomic additions on a GPU."""

import torch  # open: thread-count
from torch import nn

torch.manual_seed(3)
device = "cuda" if torch.cuda.is_available() else "cpu"  # open: nondeterministic-kernels


class GraphLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.empty(width))  # open: uninitialised-memory
        self.gain = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.ones_(self.gain)

    def forward(self, x, source, target):
        sums = torch.zeros_like(x).index_add_(0, target, self.message(x)[source])  # open: atomics
        degree = torch.bincount(target, minlength=len(x)).clamp(min=1)
        return torch.relu(sums / degree[:, None] * self.gain + self.bias)


def pool(x, graph, graphs):
    out = torch.zeros(graphs, x.size(1), device=x.device)
    return out.scatter_add_(0, graph[:, None].expand_as(x), x)  # open: atomics


nodes = torch.randn(1000, 32, device=device)
edges = torch.randint(0, 1000, (2, 5000), device=device)
graph = torch.arange(1000, device=device) // 100
labels = torch.randint(0, 2, (10,), device=device)
layer, head = GraphLayer(32).to(device), nn.Linear(32, 2).to(device)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()])
for _ in range(100):
    loss = nn.functional.cross_entropy(head(pool(layer(nodes, *edges), graph, 10)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
