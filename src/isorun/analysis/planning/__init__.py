"""How many runs a difference takes, and what so many runs can see."""
