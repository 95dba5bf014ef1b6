"""Ranks: a training that is several processes at once (torchrun, accelerate, Lightning's ddp, a pool of its own).

Each process tells its rank when it joins the others, and so has a file in the run folder, also where it logs nothing:
the record knows how many trained, and that none is missing.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any, Callable

from . import frameworks, printing
from .recorder import active, guarded


def follow(module: ModuleType) -> None:
    """Know from now on when this process joins others. It is called before names are taken from the module."""
    name = frameworks.RANKS_JOINED[module.__name__]
    join: Callable[..., Any] = getattr(module, name)

    @functools.wraps(join)
    def followed(*arguments: Any, **options: Any) -> Any:
        joined = join(*arguments, **options)
        recorder = active()
        if recorder is not None:
            guarded(recorder.folder, "telling the rank", _tell)(module)
        return joined

    setattr(module, name, followed)


def _tell(module: Any) -> None:
    recorder, size = active(), int(module.get_world_size())
    if recorder is None or size < 2:
        return
    from socket import gethostname  # every child Python starts a worker, and few are ranks

    local = os.environ.get("LOCAL_RANK", "")
    rank = int(module.get_rank())
    if rank:
        printing.of_this_process().follow()
    recorder.join_ranks(
        rank,
        {
            "world_size": size,
            "backend": str(module.get_backend()),
            "host": gethostname(),
            **({"local_rank": int(local)} if local.isdigit() else {}),
        },
    )
