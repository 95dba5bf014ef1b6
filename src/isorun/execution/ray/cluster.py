"""What a run needs of a Ray cluster, what the cluster has, and how many runs fit there at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.errors import ExecutionError
from isorun.execution import Resources
from isorun.study import Environment

__all__ = ["Cluster", "Needs"]

_UNITS: Final = {"CPU": "CPUs", "GPU": "GPUs", "memory": "bytes of memory"}
_HINTS: Final = {
    "CPU": "lower `threads` of the environment",
    "GPU": "lower `devices_per_run` of the environment, or --gpus-per-run",
    "memory": "lower `memory` of the environment",
}


@dataclass(frozen=True, slots=True)
class Needs:
    """What one run asks Ray for. A run that names no threads has one CPU, as Ray's own tasks have."""

    cpus: int = 1
    gpus: int = 0
    memory: int = 0

    @classmethod
    def of(cls, resources: Resources, device: str, gpus: int | None) -> Needs:
        """Of these resources, a device that a switch names ("cuda"), and GPUs for those that do not say."""
        own = resources.devices if resources.devices is not None else gpus
        if own is None:
            own = int(device.partition(":")[0] not in {"", "cpu"})
        return cls(resources.cpus or 1, own, resources.memory_bytes or 0)

    @classmethod
    def of_environment(cls, environment: Environment, gpus: int | None) -> Needs:
        """Of the runs of an environment."""
        resources = Resources(environment.threads, environment.devices_per_run, environment.memory_bytes)
        return cls.of(resources, environment.switches.get("device", ""), gpus)

    def to_json(self) -> dict[str, int]:
        """Plain JSON."""
        return {"cpus": self.cpus, "gpus": self.gpus, "memory": self.memory}

    @property
    def by_name(self) -> dict[str, int]:
        """As Ray calls them, without those of which it needs none."""
        return {name: count for name, count in zip(_UNITS, (self.cpus, self.gpus, self.memory), strict=True) if count}


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes that are there, each as what it has, and those that an autoscaler may start. ids: Ray's, of nodes."""

    address: str
    version: str
    nodes: tuple[Mapping[str, float], ...]
    to_come: tuple[Mapping[str, float], ...] = ()
    ids: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, address: str, version: str, told: Mapping[str, Any]) -> Cluster:
        """As the driver tells it."""
        nodes = told["nodes"]
        ids = tuple(node["id"] for node in nodes)
        return cls(address, version, tuple(node["has"] for node in nodes), tuple(told["to_come"]), ids)

    def __str__(self) -> str:
        """In a few words."""
        cpus = sum(node.get("CPU", 0.0) for node in self.nodes)
        gpus = sum(node.get("GPU", 0.0) for node in self.nodes)
        count = f"{len(self.nodes)} node{'' if len(self.nodes) == 1 else 's'}, {cpus:g} CPUs"
        place = "a local cluster" if self.address == "local" else f"the cluster at {self.address}"
        return f"on {place}, Ray {self.version}: {count}{f', {gpus:g} GPUs' if gpus else ''}"

    @property
    def _more_nodes(self) -> str:
        """What else may help; a cluster that is ours alone has no more nodes."""
        if self.address == "local" or "//" in self.address:
            return ", or name a cluster that has it: RAY_ADDRESS"
        return f", or add a node that has it: ray start --address {self.address}"

    def room(self, needs: Needs) -> int:
        """How many runs that need this fit at a time on the nodes that are there."""
        return sum(_fitting(node, needs) for node in self.nodes)

    def with_room(self, needs: Needs) -> set[str]:
        """The ids of the nodes that are there and have what a run needs, when nothing else runs on them."""
        return {name for name, node in zip(self.ids, self.nodes, strict=True) if _fitting(node, needs)}

    def check(self, needs: Needs) -> None:
        """Raise ExecutionError if no node has what a run needs, and none that may be started."""
        every = (*self.nodes, *self.to_come)
        if any(_fitting(node, needs) for node in every):
            return
        short = [name for name, count in needs.by_name.items() if _most(every, name) < count]
        about = short[0] if short else "CPU"
        raise ExecutionError(
            f"an environment asks for {_told(needs.by_name)} a run, which no node of the Ray cluster has",
            found=f"{self}; the most on one node: {_told({name: _most(every, name) for name in needs.by_name})}",
            allowed="what one node has: a run is never divided",
            hint=_HINTS[about] + self._more_nodes,
        )


def _fitting(node: Mapping[str, float], needs: Needs) -> int:
    return int(min(node.get(name, 0.0) // count for name, count in needs.by_name.items()))


def _most(nodes: Sequence[Mapping[str, float]], name: str) -> float:
    return max((node.get(name, 0.0) for node in nodes), default=0.0)


def _told(counts: Mapping[str, float]) -> str:
    words = [
        f"{count:,.0f} {_UNITS[name] if count != 1 else _UNITS[name].replace('s', '', 1)}"
        for name, count in counts.items()
    ]
    return " and ".join(words)
