from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


class ShardedImages(Dataset):
    def __init__(self, folder):
        self.files = list(Path(folder).glob("*.npz"))  # open: file-order

    def __len__(self):
        return len(self.files)

    def __getitem__(self, place):
        shard = np.load(self.files[place])  # open: data-checksum
        return torch.from_numpy(shard["image"]), int(shard["label"])
