"""Loaders of published data sets: canonical source, checksum, resume, and a folder for machines without a network."""
