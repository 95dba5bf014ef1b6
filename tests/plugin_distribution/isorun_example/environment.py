"""An environment that, as a container does, passes on only what it is told: no variable of the caller gets in."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from isorun.environments import AbstractEnvironment, Prepared
from isorun.errors import ExecutionError, StudyError


@dataclass(frozen=True)
class Boxed(Prepared):
    """A command in the box."""

    def wrap(self, argv, variables, folders):
        """Start it with these variables and no others."""
        told = {"PATH": f"{Path(sys.executable).parent}:{os.defpath}", **variables, "BOX": str(folders.run)}
        return ("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in told.items()), *argv)


class Box(AbstractEnvironment):
    """The box. What is called by a name is looked for inside, by the PATH that is there.

    Its setting `colour` is painted once, before the first run; `dries` is for how many seconds that takes longer.
    """

    def __init__(self, declared):
        self.declared = declared
        unknown = set(declared.settings) - {"colour", "dries"}
        if unknown:
            where = f"environments.{declared.name}.settings"
            raise StudyError(f"{where}: a box has no setting {min(unknown)!r}", allowed="colour, dries")

    def make(self, folder, tell):
        """Paint it."""
        colour = self.declared.settings.get("colour", "brown")
        tell(f"painting the box {colour}")
        if colour == "invisible":
            raise ExecutionError("the box cannot be painted", found=colour)
        subprocess.run(["sleep", str(self.declared.settings.get("dries", 0))], check=True)
        with (folder / "coats").open("a") as coats:
            coats.write(f"{colour}\n")

    def prepare(self, command, working_folder):
        """Nothing is to be done for one run."""
        interpreter = command[0] if command[0].startswith("python") else ""
        painted = (self.folder / "coats").read_text().split()
        return Boxed(command[0], interpreter, dict(os.environ), {"box": "1", "coats": painted})
