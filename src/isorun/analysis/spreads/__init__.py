"""How much the runs of one group vary."""
