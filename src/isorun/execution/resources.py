"""What runs are lent: CPUs, devices, and a copy of standard input.

Libraries size their thread pools by the CPUs they may use, and another number of threads gives other bits. So the
CPUs are divided once, into slots that never overlap and never change size while the executor lives: a run sees the
same number of CPUs whether it runs alone or beside others. Devices are lent too, but where there are fewer than runs
they are shared, and the record says so.

Of standard input that isorun was given every run gets a copy of the whole. Of a terminal it gets one of its own, of the
same size, at which nobody types: who asks how wide it is (`stty size`) is answered, who waits for a line finds the end,
and what is typed belongs to isorun. Where there is nothing, runs find an empty input. A device that never ends
(/dev/zero) is refused. A file is copied when the first run starts, from where it stands, and stays where it stands for
whoever reads it next. A pipe is copied while it comes: a run that reads it waits for more just as it would without
isorun, and one that does not is never held up. Whether a run read it, the place says at which its own copy stands when
it has ended.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import itertools
import os
import queue
import re
import select
import shutil
import stat
import struct
import subprocess
import tempfile
import termios
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from isorun.errors import ExecutionError
from isorun.study import Environment
from isorun.study.records import RunRecord

__all__ = [
    "DEVICE_VARIABLES",
    "MOST_BYTES",
    "STDIN",
    "Devices",
    "InputCopy",
    "Lent",
    "Slots",
    "StandardInput",
    "check_memory",
    "divide",
    "lent_cpus",
    "own_input",
    "read_another_input",
    "usable_cpus",
    "visible_devices",
]

_TOPOLOGY: Final = Path("/sys/devices/system/cpu")
_CUDA, _HIP, _ROCR = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
DEVICE_VARIABLES: Final = (_CUDA, _HIP, _ROCR)
"""Those that say which devices a process sees, the first that is set before the others."""
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


@contextmanager
def lent_cpus(threads: int | None, listed: str) -> Iterator[tuple[int, ...]]:
    """CPUs for the one run of this process: the first `threads` of those listed ("0,1"), to which it is pinned.

    Where none are listed it has all that this process may use: who started the process divided them, and a choice made
    here would be the same for every run beside it.
    """
    usable = usable_cpus()
    cpus = _listed_cpus(listed, usable) if listed else usable
    slots = Slots(1, cpus)
    with slots.lend(threads) as first:
        yield first if listed else cpus


def _listed_cpus(listed: str, usable: Sequence[int]) -> tuple[int, ...]:
    words = [word.strip() for word in listed.split(",")]
    cpus = tuple(int(word) for word in words if word.isdecimal() and int(word) in usable)
    if len(cpus) < len(words) or len(set(cpus)) < len(cpus):
        raise ExecutionError(
            f"{listed!r} does not name CPUs that this process may use",
            found=", ".join(map(str, sorted(usable))),
            allowed="a list of those, each once",
        )
    return cpus


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

    def check_environment(self, environment: Environment) -> None:
        """Raise ExecutionError if no run of this environment can have the devices that it asks for."""
        self.check_device(environment.switches.get("device", ""))
        if not visible_devices(environment.variables, detect=False).variable:
            self.check(environment.devices_per_run)

    def check(self, count: int | None) -> None:
        """Raise ExecutionError if a run that needs so many devices cannot have them."""
        if count is not None and count > len(self.names):
            raise ExecutionError(
                f"an environment asks for {_count(count, 'device')} a run, which no run here can have",
                found=f"{_count(len(self.names), 'device')}{': ' if self.names else ''}{', '.join(self.names)}",
                allowed=f"devices_per_run from 0 to {len(self.names)}",
                hint="nvidia-smi -L lists the GPUs of NVIDIA; --devices names those that may be used",
            )

    def check_device(self, device: str) -> None:
        """Raise ExecutionError if a run is to compute on a device ("cuda", "cuda:1") that is not there."""
        kind, _, number = device.partition(":")
        if kind in {"", "cpu"} or (number in self.names if number else self.names):
            return
        raise ExecutionError(
            f"an environment asks for the device {device}, which no run here can have",
            found=", ".join(f"{self._visible.kind}:{name}" for name in self.names) or "no device",
            allowed=", ".join(["cpu", *(f"{self._visible.kind}:{name}" for name in self.names)]),
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
    for variable in DEVICE_VARIABLES:
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


@functools.cache
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
# The key in `environment.requested` of a record under which the input that the run read is known.
STDIN: Final = "stdin"
_PIECE_BYTES: Final = 1 << 16
_END_OF_INPUT: Final = b"\x04"
_ENDS: Final = 1000
"""So often a run may ask its terminal for a line and find the end; then it waits, as at a terminal it would."""


class InputCopy:
    """One run's own copy of standard input. fd: what it reads from, which must stay open here until it has ended.

    keyboard: the other end, where that is a terminal.
    """

    def __init__(self, fd: int, fed: _Fed | None = None, keyboard: int | None = None) -> None:
        self.fd = fd
        self._fed = fed
        self._keyboard = keyboard

    def was_read(self) -> bool:
        """Whether the run took anything of it, as far as the place it stands at can tell."""
        if self._keyboard is not None:
            return False  # nothing is typed there
        if self._fed is None:
            return os.lseek(self.fd, 0, os.SEEK_CUR) > 0
        return self._fed.taken(self.fd) > 0

    def close(self) -> None:
        """Let go of it; nothing more is written into it."""
        os.close(self.fd)
        if self._keyboard is not None:
            os.close(self._keyboard)
        if self._fed is not None:
            self._fed.end()


class _Fed:
    """What went into a run's pipe. Writing never waits, so that what was counted is what is there.

    grown: told when the run has ended, which whoever waits for more to write must know.
    """

    def __init__(self, fd: int, grown: threading.Condition) -> None:
        self.is_over = False
        self._grown = grown
        self._fd = fd
        self._count = 0
        self._lock = threading.Lock()
        os.set_blocking(fd, False)
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)

    def write(self, piece: bytes) -> int:
        """Write as much as there is room for, when there is; OSError when nobody reads any more."""
        self._room.poll()
        with self._lock:
            try:
                written = os.write(self._fd, piece)
            except BlockingIOError:
                return 0
            self._count += written
            return written

    def end(self) -> None:
        """The run has ended."""
        with self._grown:
            self.is_over = True
            self._grown.notify_all()

    def taken(self, other_end: int) -> int:
        """How many of them were read from the other end."""
        with self._lock:
            waiting = fcntl.ioctl(other_end, termios.FIONREAD, struct.pack("i", 0))
            return self._count - int(struct.unpack("i", waiting)[0])


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
        self._sha256: str | None = None
        self._grown = threading.Condition()

    @property
    def is_there(self) -> bool:
        """Whether there is anything that could be read."""
        return bool(self._kind)

    def open(self) -> InputCopy | None:
        """A new copy that is read from its start, or a terminal at which nobody types; None where there is nothing."""
        if not self._kind:
            return _terminal_like(self._fd) if os.isatty(self._fd) else None
        with self._grown:
            self.check()
            self._begin()
            self.check()
            if self._complete:
                return InputCopy(os.open(f"/proc/self/fd/{self._file.fileno()}", os.O_RDONLY))
        ours, theirs = os.pipe()
        fed = _Fed(theirs, self._grown)
        threading.Thread(target=self._feed, args=(theirs, fed), name="standard-input", daemon=True).start()
        return InputCopy(ours, fed)

    def identity(self, seconds: float = 0.0) -> dict[str, Any]:
        """What it is: `bytes` and `sha256`, the latter None while more may come. It is waited for so many seconds."""
        if not self._kind:
            return {"sha256": hashlib.sha256().hexdigest(), "bytes": 0}
        if self._kind == "device":
            return {"sha256": None, "bytes": 0}
        with self._grown:
            self._begin()
            self._grown.wait_for(lambda: self._complete or self._too_large, seconds)
            if self._closed or self._too_large or not self._complete:
                return {"sha256": None, "bytes": self._length}
            if self._sha256 is None:
                self._sha256 = _sha256_of(self._file.fileno())
            return {"sha256": self._sha256, "bytes": self._length}

    def check(self) -> None:
        """Raise ExecutionError if there was more than can be copied: no run may get a part of it."""
        if self._kind == "device":
            raise ExecutionError(
                "standard input is a device, of which no copy can be made for every run",
                found=str(Path(f"/proc/self/fd/{self._fd}").readlink()),
                allowed="a file, a pipe, a terminal or nothing",
                hint="isorun … < /dev/null, or let the training open the device",
            )
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
        while not self._too_large and (piece := os.pread(self._fd, _PIECE_BYTES, place + self._length)):
            self._add(piece)
        self._complete = not self._too_large

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

    def _feed(self, theirs: int, fed: _Fed) -> None:
        """Write the copy into a run's pipe while it grows, until all of it is there or the run has gone."""
        place = 0
        try:
            while piece := self._piece(place, fed):
                place += fed.write(piece)
        except OSError:
            return  # the run has ended, or reads no more
        finally:
            os.close(theirs)

    def _piece(self, place: int, fed: _Fed) -> bytes:
        with self._grown:
            self._grown.wait_for(lambda: self._length > place or self._complete or self._too_large or fed.is_over)
            return b"" if self._closed or fed.is_over else os.pread(self._file.fileno(), _PIECE_BYTES, place)

    def close(self) -> None:
        """Let go of the copy; runs that still read it find its end."""
        with self._grown:
            self._closed = self._complete = True
            if self._copy is not None:
                self._copy.close()
            self._grown.notify_all()


def _terminal_like(fd: int) -> InputCopy | None:
    """A terminal of the same size at which nobody types, and nobody's controlling one; None where none can be had."""
    try:
        keyboard, terminal = os.openpty()
    except OSError:
        return None  # a machine without pseudo-terminals, or with none left
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    size = fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    os.write(keyboard, _END_OF_INPUT * _ENDS)
    return InputCopy(terminal, keyboard=keyboard)


def _sha256_of(fd: int) -> str:
    found = hashlib.sha256()
    place = 0
    while piece := os.pread(fd, _PIECE_BYTES, place):
        found.update(piece)
        place += len(piece)
    return found.hexdigest()


@cache
def own_input() -> StandardInput:
    """Standard input of this process: one copy for all executors that it opens, for what came once comes no more."""
    made = StandardInput()
    atexit.register(made.close)
    return made


def read_another_input(made: Iterable[RunRecord], given: StandardInput | None = None, seconds: float = 2.0) -> int:
    """How many of these runs read another standard input than the one that is given now.

    It is looked at only if some run read one. What still comes after so many seconds cannot be compared: that is none.
    """
    read = [record.environment.get("requested", {}).get(STDIN) for record in made]
    known = [identity["sha256"] for identity in read if identity and identity["sha256"]]
    if not known:
        return 0
    now = (given or own_input()).identity(seconds)["sha256"]
    return sum(now is not None and other != now for other in known)


def _kind(fd: int) -> str:
    """What it is: "file", "pipe", "device", or empty for what holds nothing to be copied: a terminal, /dev/null."""
    try:
        found = os.fstat(fd)
    except OSError:
        return ""
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISCHR(mode) and not os.isatty(fd) and found.st_rdev != Path(os.devnull).stat().st_rdev:
        return "device"
    piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return "pipe" if piped and not _is_over(fd) else ""


def _is_over(fd: int) -> bool:
    """Whether a pipe was closed at its other end, and nothing is left in it."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(events & select.POLLHUP and not events & select.POLLIN for _, events in poll.poll(0))
