"""How the results of the statistics commands are shown, one file a result."""
