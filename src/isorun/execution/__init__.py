"""Run: carry out cells, each in a process of its own."""
