"""What runs are lent: CPUs, devices, and a copy of standard input.

Libraries size their thread pools by the CPUs they may use, and another number of threads gives other bits. So the
CPUs are divided once, into slots that never overlap and never change size while the executor lives: a run sees the
same number of CPUs whether it runs alone or beside others. Devices are lent too, but where there are fewer than runs
they are shared, and the record says so.

Of standard input that isorun was given every run gets a copy of the whole. A terminal is not passed on, and neither is
nothing: those runs find an empty input. A file is copied when the first run starts, from where it stands, and stays
where it stands for whoever reads it next. A pipe is copied while it comes: a run that reads it waits for more just as
it would without isorun, and one that does not is never held up.
"""

from __future__ import annotations

import itertools
import os
import queue
import re
import select
import shutil
import stat
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from isorun.errors import ExecutionError

__all__ = [
    "MOST_BYTES",
    "Devices",
    "Lent",
    "Slots",
    "StandardInput",
    "check_memory",
    "divide",
    "usable_cpus",
    "visible_devices",
]

_TOPOLOGY: Final = Path("/sys/devices/system/cpu")
_CUDA, _HIP, _ROCR = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
_ROCM_KIND: Final = "rocm"
_NO_DEVICE: Final = "-1"
_ASK_SECONDS: Final = 20.0
_NVIDIA_GPUS: Final = Path("/proc/driver/nvidia/gpus")
_NVIDIA_LINE: Final = re.compile(r"^GPU (\d+):", re.MULTILINE)
_AMD_NODES: Final = Path("/sys/class/kfd/kfd/topology/nodes")
_AMD_UNITS: Final = re.compile(r"^simd_count [1-9]", re.MULTILINE)


class Slots:
    """A fixed number of disjoint sets of CPUs, each lent to one run at a time."""

    def __init__(self, jobs: int, cpus: Iterable[int] | None = None) -> None:
        self._cpus = tuple(usable_cpus() if cpus is None else cpus)
        self.slots = divide(self._cpus, jobs)
        self._free: queue.LifoQueue[tuple[int, ...]] = queue.LifoQueue()
        for slot in reversed(self.slots):
            self._free.put(slot)

    def check(self, threads: int | None) -> None:
        """Raise ExecutionError if a run with that many threads fits no slot."""
        size = len(self.slots[0])
        if threads is None or 1 <= threads <= size:
            return
        fitting = len(self._cpus) // threads if threads > 0 else 0
        raise ExecutionError(
            f"an environment asks for {threads} threads, which no run here can have",
            found=f"{_count(len(self._cpus), 'CPU')} for {_count(len(self.slots), 'parallel run')}: {size} each",
            allowed=f"threads from 1 to {size}",
            hint=f"--jobs {fitting}" if fitting else "lower `threads` of the environment, or use a larger machine",
        )

    @contextmanager
    def lend(self, threads: int | None = None) -> Iterator[tuple[int, ...]]:
        """The CPUs of a free slot, the first `threads` of them if given; waits until a slot is free."""
        self.check(threads)
        slot = self._free.get()
        try:
            yield slot[:threads]
        finally:
            self._free.put(slot)


class Lent:
    """Devices that one run sees. variables: what shows it those and no others; empty where it sees what there is.

    shared: whether another run had one of them at some time, so that both may have been slower or short of memory.
    """

    def __init__(self, names: tuple[str, ...] = (), variables: Mapping[str, str] | None = None, kind: str = "") -> None:
        self.names = names
        self.variables = variables or {}
        self.shared = False
        self._kind = kind

    @property
    def recorded(self) -> list[str]:
        """The devices as a record names them: cuda:0."""
        return [f"{self._kind}:{name}" for name in self.names]


class Devices:
    """The devices that runs may use, each lent to as few runs at a time as possible.

    asked: "auto" for those that are visible here, "none", or a list such as "0,1" of them. jobs: how many runs there
    are at a time; a run that does not say how many devices it needs sees an equal share, and at least one.
    """

    def __init__(self, asked: str = "auto", jobs: int = 1, environment: Mapping[str, str] | None = None) -> None:
        self._visible = visible_devices(os.environ if environment is None else environment)
        self._hidden = asked == "none"
        self.names = () if self._hidden else _chosen(asked, self._visible)
        self._share = max(len(self.names) // jobs, 1) if jobs > 1 else len(self.names)
        self._all_as_they_are = asked == "auto"
        self._held: list[Lent] = []
        self._lock = threading.Lock()

    @contextmanager
    def lend(self, count: int | None, study_variables: Mapping[str, str]) -> Iterator[Lent]:
        """So many devices, or an equal share; those that the study's own variables name are left as they are."""
        own = visible_devices(study_variables, detect=False)
        with self._lock:
            lent = Lent(own.names, {}, own.kind) if own.variable else self._free(count)
            for other in self._held:
                if set(other.names) & set(lent.names):
                    other.shared = lent.shared = True
            self._held.append(lent)
        try:
            yield lent
        finally:
            with self._lock:
                self._held.remove(lent)

    def check(self, count: int | None) -> None:
        """Raise ExecutionError if a run that needs so many devices cannot have them."""
        if count is not None and count > len(self.names):
            raise ExecutionError(
                f"an environment asks for {_count(count, 'device')} a run, which no run here can have",
                found=f"{_count(len(self.names), 'device')}{': ' if self.names else ''}{', '.join(self.names)}",
                allowed=f"devices_per_run from 0 to {len(self.names)}",
                hint="nvidia-smi -L lists the GPUs of NVIDIA; --devices names those that may be used",
            )

    def _free(self, count: int | None) -> Lent:
        self.check(count)
        wanted = min(self._share, len(self.names)) if count is None else count
        if wanted == 0 and not (self._hidden or self.names):
            return Lent()
        if wanted == len(self.names) and self._all_as_they_are:
            return Lent(self.names, {}, self._visible.kind)
        uses = Counter(name for lent in self._held for name in lent.names)
        least_used = sorted(self.names, key=lambda name: (uses[name], self.names.index(name)))[:wanted]
        chosen = tuple(name for name in self.names if name in least_used)
        return Lent(chosen, self._variables(chosen), self._visible.kind)

    def _variables(self, chosen: tuple[str, ...]) -> dict[str, str]:
        """What frameworks read. One variable only: those of AMD count within each other."""
        if not chosen:
            return dict.fromkeys((self._visible.variable or _CUDA, _HIP), _NO_DEVICE)
        if self._visible.variable:
            return {self._visible.variable: ",".join(chosen)}
        if self._visible.kind == _ROCM_KIND:
            return {_HIP: ",".join(chosen)}
        # Without it CUDA counts the fastest first, and its numbers are not those that nvidia-smi shows.
        return {_CUDA: ",".join(chosen), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@dataclass(frozen=True, slots=True)
class Visible:
    """Devices that a process here would see. variable: what names them, empty where none does."""

    names: tuple[str, ...] = ()
    kind: str = "cuda"
    variable: str = ""


def visible_devices(environment: Mapping[str, str], *, detect: bool = True) -> Visible:
    """What the variables say; where they say nothing and `detect` is set, what the drivers say.

    No framework is asked: importing one takes seconds and may open the device.
    """
    for variable in (_CUDA, _HIP, _ROCR):
        if variable in environment:
            kind = "cuda" if variable == _CUDA else _ROCM_KIND
            return Visible(_listed(environment[variable]), kind, variable)
    if not detect:
        return Visible()
    if nvidia := _nvidia_devices(environment):
        return Visible(nvidia)
    return Visible(_amd_devices(), _ROCM_KIND) if _AMD_NODES.is_dir() else Visible()


def _listed(text: str) -> tuple[str, ...]:
    """The devices of a list as CUDA reads it: what comes after a wrong one does not count."""
    names = [name.strip() for name in text.split(",")]
    return tuple(itertools.takewhile(lambda name: name and not name.startswith("-"), names))


def _nvidia_devices(environment: Mapping[str, str]) -> tuple[str, ...]:
    program = shutil.which("nvidia-smi", path=environment.get("PATH", os.defpath))
    if program is None:
        return tuple(str(number) for number in range(_entries(_NVIDIA_GPUS)))
    try:
        answer = subprocess.run(
            [program, "-L"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(_NVIDIA_LINE.findall(answer.stdout)) if answer.returncode == 0 else ()


def _amd_devices() -> tuple[str, ...]:
    """The nodes of AMD's driver that can compute; CPUs are nodes too, without such units."""
    nodes = [path.read_text() for path in sorted(_AMD_NODES.glob("*/properties")) if path.is_file()]
    return tuple(str(number) for number in range(sum(bool(_AMD_UNITS.search(text)) for text in nodes)))


def _entries(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def _chosen(asked: str, visible: Visible) -> tuple[str, ...]:
    if asked == "auto":
        return visible.names
    names = tuple(name.strip() for name in asked.split(","))
    unknown = [name for name in names if name not in visible.names]
    if unknown or len(set(names)) < len(names):
        raise ExecutionError(
            f"--devices: {asked!r} does not name devices that are visible here",
            found=", ".join(visible.names) or "none",
            allowed="auto, none, or a list of those that are visible, each once",
            hint="" if visible.names else "CUDA_VISIBLE_DEVICES names devices that no driver lists here",
        )
    return names


def divide(cpus: Sequence[int], jobs: int) -> tuple[tuple[int, ...], ...]:
    """`jobs` disjoint slots of equal size; CPUs that do not divide evenly stay unused."""
    if not 1 <= jobs <= len(cpus):
        raise ExecutionError(
            f"{jobs} runs at once do not fit on this machine: runs that share a CPU would disturb each other",
            found=f"{_count(len(cpus), 'CPU')} that this process may use",
            allowed=f"--jobs from 1 to {len(cpus)}",
            hint=f"--jobs {len(cpus)}",
        )
    size = len(cpus) // jobs
    return tuple(tuple(cpus[start * size : (start + 1) * size]) for start in range(jobs))


def usable_cpus() -> tuple[int, ...]:
    """The CPUs this process may use, those of one physical core side by side, so that slots rarely share a core."""
    return tuple(sorted(os.sched_getaffinity(0), key=lambda cpu: (*_core(cpu), cpu)))


def _core(cpu: int) -> tuple[int, int]:
    topology = _TOPOLOGY / f"cpu{cpu}" / "topology"
    try:
        package, core = (int((topology / name).read_text()) for name in ("physical_package_id", "core_id"))
    except (OSError, ValueError):
        return (0, cpu)
    return (package, core)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def check_memory(needed: int | None) -> None:
    """Raise ExecutionError if a run is declared to need more memory than this machine has."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed is not None and needed > there:
        raise ExecutionError(
            "an environment asks for more memory than this machine has",
            found=f"{needed:,} bytes, and {there:,} here",
            hint="lower `memory` of the environment, or use a larger machine",
        )


MOST_BYTES: Final = 1 << 28
_PIECE_BYTES: Final = 1 << 16


class StandardInput:
    """What can be read from a file descriptor, for many readers."""

    def __init__(self, fd: int = 0, most_bytes: int = MOST_BYTES) -> None:
        self._fd = fd
        self._most_bytes = most_bytes
        self._kind = _kind(fd)
        self._copy: IO[bytes] | None = None
        self._length = 0
        self._complete = False
        self._too_large = False
        self._closed = False
        self._grown = threading.Condition()

    def open(self) -> int | None:
        """A new descriptor that reads the copy from its start; None where there is nothing to read."""
        if not self._kind:
            return None
        with self._grown:
            self._begin()
            if self._complete:
                return os.open(f"/proc/self/fd/{self._file.fileno()}", os.O_RDONLY)
        ours, theirs = os.pipe()
        threading.Thread(target=self._feed, args=(theirs,), name="standard-input", daemon=True).start()
        return ours

    def check(self) -> None:
        """Raise ExecutionError if there was more than can be copied: no run may get a part of it."""
        if self._too_large:
            raise ExecutionError(
                "standard input is too large to be copied for every run",
                found=f"more than {self._most_bytes:,} bytes",
                hint="save it to a file and let the training open that",
            )

    @property
    def _file(self) -> IO[bytes]:
        assert self._copy is not None
        return self._copy

    def _begin(self) -> None:
        if self._copy is not None:
            return
        self._copy = tempfile.TemporaryFile(prefix="isorun-stdin-")  # noqa: SIM115 - it lives as long as the runs
        if self._kind == "file":
            self._take_file()
        else:
            threading.Thread(target=self._take_pipe, name="standard-input", daemon=True).start()

    def _take_file(self) -> None:
        place = os.lseek(self._fd, 0, os.SEEK_CUR)
        while piece := os.pread(self._fd, _PIECE_BYTES, place + self._length):
            self._add(piece)
            self.check()
        self._complete = True

    def _take_pipe(self) -> None:
        """Copy until the other end closes; more than can be kept is left to whoever wrote it."""
        piece = b"-"
        while piece and not (self._too_large or self._closed):
            try:
                piece = os.read(self._fd, _PIECE_BYTES)
            except OSError:
                piece = b""
            with self._grown:
                self._add(piece)
                self._complete = self._complete or not piece
                self._grown.notify_all()

    def _add(self, piece: bytes) -> None:
        if self._length + len(piece) > self._most_bytes:
            self._too_large = True
        if self._too_large or self._closed:
            return
        os.pwrite(self._file.fileno(), piece, self._length)
        self._length += len(piece)

    def _feed(self, theirs: int) -> None:
        """Write the copy into a run's pipe while it grows, until all of it is there or the run has gone."""
        place = 0
        try:
            while piece := self._piece(place):
                place += os.write(theirs, piece)
        except OSError:
            return  # the run has ended, or reads no more
        finally:
            os.close(theirs)

    def _piece(self, place: int) -> bytes:
        with self._grown:
            self._grown.wait_for(lambda: self._length > place or self._complete or self._too_large)
            return b"" if self._closed else os.pread(self._file.fileno(), _PIECE_BYTES, place)

    def close(self) -> None:
        """Let go of the copy; runs that still read it find its end."""
        with self._grown:
            self._closed = self._complete = True
            if self._copy is not None:
                self._copy.close()
            self._grown.notify_all()


def _kind(fd: int) -> str:
    """What it is: "file", "pipe", or empty for what is not copied: a terminal, another device, nothing."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode):
        return "file"
    piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return "pipe" if piped and not _is_over(fd) else ""


def _is_over(fd: int) -> bool:
    """Whether a pipe was closed at its other end, and nothing is left in it."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(events & select.POLLHUP and not events & select.POLLIN for _, events in poll.poll(0))
