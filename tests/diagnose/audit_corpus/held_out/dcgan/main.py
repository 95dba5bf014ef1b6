"""Two networks against each other, on folders of pictures."""

import argparse
import random

import torch  # open: thread-count
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim
import torchvision.datasets as dset
import torchvision.transforms as transforms

parser = argparse.ArgumentParser()
parser.add_argument("--dataroot", required=True)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--niter", type=int, default=25)
parser.add_argument("--manualSeed", type=int)
opt = parser.parse_args()

if opt.manualSeed is None:
    opt.manualSeed = random.randint(1, 10000)
print("Random Seed: ", opt.manualSeed)
random.seed(opt.manualSeed)  # open: fresh-seed
torch.manual_seed(opt.manualSeed)  # open: fresh-seed
cudnn.benchmark = True  # open: cudnn-autotune

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")  # open: nondeterministic-kernels
dataset = dset.ImageFolder(
    root=opt.dataroot, transform=transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
)
loader = torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True, num_workers=opt.workers)


def weights_init(m):
    if m.__class__.__name__.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)


generator = nn.Sequential(nn.ConvTranspose2d(100, 64, 64), nn.Tanh(), nn.Conv2d(64, 3, 1)).to(device)
generator.apply(weights_init)
critic = nn.Sequential(nn.Conv2d(3, 64, 64), nn.Flatten(), nn.Linear(64, 1), nn.Sigmoid()).to(device)
critic.apply(weights_init)
criterion = nn.BCELoss()
fixed_noise = torch.randn(64, 100, 1, 1, device=device)
optimizer_d = optim.Adam(critic.parameters(), lr=2e-4)
optimizer_g = optim.Adam(generator.parameters(), lr=2e-4)
for epoch in range(opt.niter):
    for real, _ in loader:
        critic.zero_grad()
        fake = generator(torch.randn(len(real), 100, 1, 1, device=device))
        loss = criterion(critic(real.to(device)), torch.ones(len(real), 1, device=device))
        (loss + criterion(critic(fake.detach()), torch.zeros(len(real), 1, device=device))).backward()
        optimizer_d.step()
        generator.zero_grad()
        criterion(critic(fake), torch.ones(len(real), 1, device=device)).backward()
        optimizer_g.step()
    torch.save(generator.state_dict(), f"generator_{epoch}.pth")
