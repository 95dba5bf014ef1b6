import torch.nn as nn


class RNNModel(nn.Module):
    def __init__(self, tokens, width, hidden):
        super().__init__()
        self.encoder = nn.Embedding(tokens, width)
        self.rnn = nn.LSTM(width, hidden, 2, dropout=0.2)
        self.decoder = nn.Linear(hidden, tokens)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, tokens):
        output, _ = self.rnn(self.encoder(tokens))
        return self.decoder(output).flatten(0, 1).log_softmax(-1)
