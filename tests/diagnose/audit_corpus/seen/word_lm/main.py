"""A recurrent language model over words; data and model live in modules of their own."""

import argparse
import math

import torch  # open: thread-count
import torch.nn as nn

import data
import model

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="./wikitext")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--cuda", action="store_true")
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cuda" if args.cuda else "cpu")  # open: nondeterministic-kernels
corpus = data.Corpus(args.data)
net = model.RNNModel(len(corpus.dictionary), 200, 200).to(device)
criterion = nn.NLLLoss()


def batches(source, size):
    usable = source.size(0) // size
    return source.narrow(0, 0, usable * size).view(size, -1).t().contiguous().to(device)


train_data = batches(corpus.train, 20)
for epoch in range(args.epochs):
    total = 0.0
    for start in range(0, train_data.size(0) - 1, 35):
        net.zero_grad()
        output = net(train_data[start : start + 35])
        loss = criterion(output, train_data[start + 1 : start + 36].reshape(-1))
        loss.backward()
        total += loss.item()
        for weight in net.parameters():
            weight.data.add_(weight.grad, alpha=-20.0)
    print(epoch, math.exp(total / train_data.size(0)))
