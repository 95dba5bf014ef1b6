"""What is asked of Ray: by the URL that names a cluster, and by its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from isorun.errors import ExecutionError, known_names
from isorun.study.parsing import as_duration

__all__ = ["RaySettings"]

_SETTINGS: Final = ("gpus-per-run", "patience", "time")
_PATIENCE_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class RaySettings:
    """What the URL and its settings ask for. address: empty where Ray's own variable or this machine is to say."""

    address: str = ""
    gpus: int | None = None
    time: float | None = None
    patience: float = _PATIENCE_SECONDS

    @classmethod
    def of(cls, url: str, settings: Mapping[str, str], devices: str) -> RaySettings:
        """Read them; ExecutionError for what means nothing to Ray."""
        for name in settings:
            if name not in _SETTINGS:
                raise ExecutionError(f"Ray has no setting {name!r}", allowed=known_names(name, _SETTINGS))
        if devices not in {"auto", "none"}:
            raise ExecutionError(
                "--devices names devices of this machine, and Ray divides those of its nodes",
                found=devices,
                allowed="auto or none; --gpus-per-run says how many a run has",
            )
        gpus = settings.get("gpus-per-run", "0" if devices == "none" else None)
        if gpus is not None and not gpus.isdecimal():
            raise ExecutionError("--gpus-per-run is not a number", found=gpus, allowed="0, 1, 2, …")
        patience = as_duration(settings.get("patience"), "patience")
        return cls(
            _address_of(url),
            None if gpus is None else int(gpus),
            as_duration(settings.get("time"), "--time"),
            _PATIENCE_SECONDS if patience is None else patience,
        )


def _address_of(url: str) -> str:
    """`ray://HOST:PORT` is an address as Ray knows it, of its Client; `ray:HOST:PORT` is that of a head."""
    plain = url.partition("?")[0].rstrip("/")
    _, _, rest = plain.partition(":")
    host = rest.removeprefix("//")
    if host in {"", "local", "auto"}:
        return host
    if not host.rpartition(":")[2].isdecimal():
        raise ExecutionError(
            f"{url!r} does not name a Ray cluster",
            allowed="ray:HOST:PORT, with the port of its head (6379); ray://HOST:PORT, with that of its Client (10001)",
        )
    return plain if rest.startswith("//") else host
