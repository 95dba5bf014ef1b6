"""Images with labels: MNIST and its kin, digits, CIFAR, prepared stand-ins, and images made on the spot."""
