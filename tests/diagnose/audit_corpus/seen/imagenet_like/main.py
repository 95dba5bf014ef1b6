import argparse
import random
import warnings

import torch  # open: thread-count
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torchvision.datasets as datasets
import torchvision.models as models
import torchvision.transforms as transforms

parser = argparse.ArgumentParser(description="train a network on folders of images")
parser.add_argument("data")
parser.add_argument("-a", "--arch", default="resnet18")
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("--seed", default=None, type=int)
parser.add_argument("--gpu", default=None, type=int)


def main():
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        cudnn.deterministic = True
        cudnn.benchmark = False
        warnings.warn("you have chosen to seed training", stacklevel=1)
    main_worker(args)


def main_worker(args):
    model = models.__dict__[args.arch]()
    if torch.cuda.is_available():  # open: nondeterministic-kernels
        model = model.cuda(args.gpu)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    pipeline = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),  # open: unseeded-generator
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
        ]
    )
    train_set = datasets.ImageFolder(args.data, pipeline)
    loader = torch.utils.data.DataLoader(train_set, batch_size=256, shuffle=True, num_workers=args.workers)
    for _ in range(args.epochs):
        for images, target in loader:
            loss = criterion(model(images.cuda()), target.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
