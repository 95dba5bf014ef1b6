import os

import torch


class Dictionary:
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    def __init__(self, path):
        self.dictionary = Dictionary()
        self.train = self.tokenize(os.path.join(path, "train.txt"))

    def tokenize(self, path):
        assert os.path.exists(path)
        with open(path, encoding="utf8") as lines:  # open: data-checksum
            ids = [self.dictionary.add_word(word) for line in lines for word in [*line.split(), "<eos>"]]
        return torch.tensor(ids)
