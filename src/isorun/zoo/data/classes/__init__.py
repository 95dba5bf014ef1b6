"""Images by class for few-shot learning: Omniglot, CIFAR-FS, FC100, miniImageNet, and classes made on the spot."""
