"""A character-level transformer in one file."""

import os
import pickle

import numpy as np  # open: unpinned-packages
import torch  # open: thread-count
import torch.nn as nn
from torch.nn import functional as F

data_dir = os.path.join("data", "shakespeare_char")
batch_size, block_size, max_iters = 12, 64, 2000
device = "cuda"  # open: nondeterministic-kernels
seed_offset = int(os.environ.get("RANK", 0))

torch.manual_seed(1337 + seed_offset)
torch.backends.cuda.matmul.allow_tf32 = True  # open: tf32
torch.backends.cudnn.allow_tf32 = True  # open: tf32


def get_batch(split):
    data = np.memmap(os.path.join(data_dir, split + ".bin"), dtype=np.uint16, mode="r")  # open: data-checksum
    starts = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in starts])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in starts])
    return x.to(device), y.to(device)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 128)
        self.blocks = nn.ModuleList([Block(128, 4) for _ in range(4)])
        self.head = nn.Linear(128, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


with open(os.path.join(data_dir, "meta.pkl"), "rb") as file:  # open: data-checksum
    meta = pickle.load(file)
model = torch.compile(GPT(meta["vocab_size"]).to(device))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(max_iters):
    x, y = get_batch("train")
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
