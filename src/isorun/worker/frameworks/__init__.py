"""What the worker does with each framework once it is imported: `prepare(module, settings, recorder)`."""
