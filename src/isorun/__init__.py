"""isorun: is this training result real, or is it noise, and what made it so?"""

__version__ = "0.1.0.dev0"
