"""How SM-CNN is trained: settings, randomness, batches, tensors on the device, and the loop."""
