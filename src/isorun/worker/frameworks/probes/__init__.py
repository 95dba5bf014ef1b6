"""What looks into models while they train, a framework a file; loaded only where a training is watched."""
