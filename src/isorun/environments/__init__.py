"""Where a training runs: a family, prepared on the machine that carries the run out. Here is what every kind promises.

A step before the run yields how to launch in the environment and what it is.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["AbstractEnvironment", "Prepared"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """An environment that is ready for one command.

    prefix: the words that launch inside it, before the command itself; none where the command runs as it is.
    variables: all variables of the process. interpreter: the absolute path of the Python that the command starts with,
    empty when it starts with something else. identity: what was found, as plain JSON; it is recorded with the run.
    """

    prefix: tuple[str, ...]
    variables: Mapping[str, str]
    interpreter: str
    identity: Mapping[str, Any]


class AbstractEnvironment(abc.ABC):
    """One way to say where a training runs: an interpreter, later packages, a container image, a code version.

    What is declared is part of a cell's id only where it is set; what was found is recorded, and in no id.
    """

    @abc.abstractmethod
    def prepare(self, command: Sequence[str], working_folder: Path) -> Prepared:
        """Make ready, here, what the command needs; ExecutionError when that is not possible.

        Called before every run, from several threads: what takes long is done once.
        """
