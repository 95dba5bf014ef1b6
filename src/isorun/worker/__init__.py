"""Inside the training process: standard library only, Python 3.8 or newer, works where isorun is not installed."""
