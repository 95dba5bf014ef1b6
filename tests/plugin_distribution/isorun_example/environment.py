"""An environment that, as a container does, passes on only what it is told: no variable of the caller gets in."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from isorun.environments import AbstractEnvironment, Prepared


@dataclass(frozen=True)
class Boxed(Prepared):
    """A command in the box."""

    def wrap(self, argv, variables, folders):
        """Start it with these variables and no others."""
        told = {"PATH": f"{Path(sys.executable).parent}:{os.defpath}", **variables, "BOX": str(folders.run)}
        return ("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in told.items()), *argv)


class Box(AbstractEnvironment):
    """The box. What is called by a name is looked for inside, by the PATH that is there."""

    def __init__(self, declared):
        self.declared = declared

    def prepare(self, command, working_folder):
        """Nothing is to be done for it."""
        interpreter = command[0] if command[0].startswith("python") else ""
        return Boxed(command[0], interpreter, dict(os.environ), {"box": "1"})
