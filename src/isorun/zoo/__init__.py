"""The four papers' workloads: their data, networks and training loops, declared as ordinary studies."""
