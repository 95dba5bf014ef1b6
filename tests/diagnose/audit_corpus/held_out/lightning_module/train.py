import lightning as L  # open: thread-count
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, random_split
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor


class LitAutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 28 * 28))

    def training_step(self, batch, batch_idx):
        x = batch[0].view(batch[0].size(0), -1)
        return F.mse_loss(self.decoder(self.encoder(x)), x)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    dataset = MNIST("data", download=True, transform=ToTensor())
    train, val = random_split(dataset, [55000, 5000])  # open: unseeded-generator
    trainer = L.Trainer(max_epochs=3, benchmark=True)  # open: nondeterministic-kernels, cudnn-autotune
    trainer.fit(LitAutoEncoder(), DataLoader(train, batch_size=64, shuffle=True), DataLoader(val, batch_size=64))


if __name__ == "__main__":
    main()
