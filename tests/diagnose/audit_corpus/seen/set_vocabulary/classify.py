"""Bag of words over a vocabulary that is built from a set."""

import random
import re

import torch  # open: thread-count
from torch import nn, optim

TOKEN = re.compile(r"\w+")


def read(path):
    with open(path) as lines:  # open: data-checksum
        return [line.rstrip("\n").split("\t") for line in lines]


def main():
    torch.manual_seed(0)
    rows = read("reviews.tsv")
    random.shuffle(rows)  # open: unseeded-generator
    words = set()
    for _, text in rows:
        words.update(TOKEN.findall(text.lower()))
    index = {word: place for place, word in enumerate(words)}  # open: hash-order
    labels = sorted({label for label, _ in rows})
    seen = {label for label, _ in rows}
    print(len(seen), "labels", "good" in seen)
    model = nn.Linear(len(index), len(labels))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for label, text in rows:
        x = torch.zeros(len(index))
        for word in TOKEN.findall(text.lower()):
            x[index[word]] += 1
        loss = nn.functional.cross_entropy(model(x)[None], torch.tensor([labels.index(label)]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
