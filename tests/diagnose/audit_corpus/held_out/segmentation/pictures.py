import random
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision.transforms.functional import hflip, to_tensor


class Pictures(Dataset):
    def __init__(self, folder):
        self.files = sorted(Path(folder).rglob("*.png"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, place):
        image = to_tensor(Image.open(self.files[place]))  # open: data-checksum
        if random.random() < 0.5:
            image = hflip(image)
        return image[:3], image[3].gt(0.5).to(torch.int64)
