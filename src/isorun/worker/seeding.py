"""Seeds of the training's own: noticed, taken over, or answered with those of the run. `reaching` calls what is here.

Three things may happen where a training starts a stream of random numbers:
- It gives a constant. That is told; where seeds are taken over it is replaced by a number that follows the run's seed.
  The replacement is a function of the run's seed, the kind of generator and the constant, so streams that were equal
  stay equal and different ones different, in whatever process, thread or order the calls are made. The line of a call
  is recorded and takes no part: a constant that stands at two lines to make one split twice must still make it twice.
- It gives none, and asks for fresh entropy. At the levels that fix the seed it gets a number that follows the run's
  seed, the kind of generator, the process, and how many of its kind were made there before.
  A seed that is new in every run, such as the clock, asks for the same (`entropy.py`).
- It is the worker itself that seeds: nothing happens (`suspended`).

Generators of a whole process start from the run's seed and what tells the process from others, and in a process of a
pool from what tells the task (`tasks.py`).
"""

from __future__ import annotations

import operator
import os
import sys
import threading
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Iterator, NamedTuple

from . import entropy, tasks
from . import recorder as recording
from .recorder import Recorder, shortened
from .usercode import ISORUN, STANDARD_LIBRARY, is_library_file, is_users_file

# `Random(1)` makes its calls in this file; who called that is asked for.
_RANDOM = STANDARD_LIBRARY + "random.py"
_PASSED_OVER = (ISORUN, _RANDOM, "<frozen")
_IMPORT_SYSTEM = "<frozen importlib"
# A wider number that a library passes on was drawn from another generator, which follows the run's seed already.
_WIDE = 2**32
_MOST_REMEMBERED = 65_536
_NUMBERS_OF_RANKS = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_MOST_RANKS_TOLD = 8


class Caller(NamedTuple):
    """Who made a call.

    where: file:line of the nearest caller that is the user's own code; the nearest library line where there is none.
    library: the library file that made the call, whoever asked for it; empty where the user's code did. importing:
    while it was imported, so nobody asked.
    """

    where: str
    library: str
    importing: bool


def calling() -> Caller:
    """Who made the call that is being carried out."""
    library, place, importing = "", "", False
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  `traceback.walk_stack` differs between versions
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users_file(file) or (frame.f_globals.get("__name__") == "__main__" and not file.startswith(ISORUN)):
            return Caller(f"{file}:{frame.f_lineno}", library, importing)
        importing = importing or file.startswith(_IMPORT_SYSTEM)
        if not library and not file.startswith(_PASSED_OVER):
            library, place = file, f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return Caller(place, library or "<nobody>", importing)


def shown_seed(value: Any) -> str:
    """How a seed is told: a whole number of whatever library as a plain one."""
    number = whole_number(value)
    return shortened(value) if number is None else str(number)


def whole_number(value: Any) -> int | None:
    """A number that can stand for an index, of whatever library; None for all else."""
    try:
        return operator.index(value)
    except Exception:  # a traced array of JAX raises errors of its own
        return None


class Kind(NamedTuple):
    """A family of generators in which equal constants start equal streams.

    constant: the same for all ways to write a seed that start one stream; None for what is no constant (a generator,
    fresh entropy) or would be refused.
    """

    name: str
    constant: Callable[[Any], Any]


def replacement(run_seed: int, kind: str, constant: Any) -> int:
    """What a constant is replaced by: 31 bits, which every library takes."""
    from hashlib import sha256  # every child Python starts a worker, and few take seeds over

    text = "\0".join((str(run_seed), kind, repr(constant)))
    return int.from_bytes(sha256(text.encode("utf-8", "backslashreplace")).digest()[:4], "big") >> 1


class SeedTaker:
    """Replaces constants, or answers requests for fresh entropy, in one process, and tells the record.

    takes_constants, answers_fresh: which of the two.
    """

    def __init__(self, run_seed: int, recorder: Recorder, *, takes_constants: bool, answers_fresh: bool) -> None:
        self.folder = recorder.folder
        self.takes_constants = takes_constants
        self._answers_fresh = answers_fresh
        self._run_seed = run_seed
        self._recorder = recorder
        self._given: dict[Any, Any] = {}
        self._places: set[str] = set()
        self._passed_on: set[str] = set()
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], int] = {}
        self._answered: dict[tuple[str, Any], int] = {}
        self._own: set[str] = set()
        self._forks: tuple[Any, ...] = ()
        self._forks_of_pools = 0
        if answers_fresh:
            os.register_at_fork(after_in_parent=self._count_fork, after_in_child=self._become_child)

    def take(self, kind: Kind, call: str, value: Any) -> Any:
        """What to seed with instead of `value`; itself where it is no constant, or the run's own seed."""
        original = self._original(value)
        constant = kind.constant(original)
        if constant is None:
            return value
        caller = calling()
        if caller.importing or (caller.library and _is_wide(constant)):
            return value
        new = self._replaced(kind, constant, original)
        self._places.add(caller.where)
        if caller.library:
            self._passed_on.add(shown_seed(original))
        self._recorder.seeded(call, shown_seed(original), caller.where, str(new))
        return new

    def fresh(self, kind: Kind, call: str) -> int | None:
        """What to seed with instead of fresh entropy; None where it stays fresh.

        Python's own library draws names of temporary files and the like, which must not be the same in two runs. What
        a library makes while it is imported is its own, and a fork server has made it already.
        """
        if not self._answers_fresh:
            return None
        caller = calling()
        if caller.library.startswith(STANDARD_LIBRARY) and not is_library_file(caller.library):
            return None
        if caller.importing:
            self._recorder.left_open(f"{caller.library} made a generator without a seed while it was imported")
            return None
        new = self._next_of(kind)
        self._tell(call, caller.where, "had no seed", new)
        return new

    def _next_of(self, kind: Kind) -> int:
        """The number for the next generator of its kind: in a task by its place there, else in its thread."""
        task = tasks.current()
        if task:
            around = (self._recorder.rank,) if self._is_pools_process() else self._process()
            place = (*around, "task", *task, tasks.counted(("fresh", kind.name)))
            return replacement(self._run_seed, kind.name, ("fresh", *place))
        thread = threading.current_thread()
        name = "" if thread is threading.main_thread() else thread.name
        with self._lock:
            number = self._made.get((kind.name, name), 0)
            self._made[kind.name, name] = number + 1
        return replacement(self._run_seed, kind.name, ("fresh", *self._process(), name, number))

    def _tell(self, call: str, where: str, why: str, new: int) -> None:
        message = f"{call} at {where} {why} and was given {new}"
        in_pool = bool(self._forks) or (not self._recorder.is_main_process and bool(_name_among_processes()))
        note = self._recorder.note_aside if in_pool else self._recorder.note_at
        note("generator-seeded", (call, where), message)

    def instead_of_new(self, kind: Kind, call: str, value: Any) -> int | None:
        """What to seed with instead of a seed that is new in every run; None for a constant.

        The same value gets the same answer: a time that is handed over twice starts one stream twice.
        """
        constant = kind.constant(value) if self._answers_fresh else None
        if constant is None:
            return None
        known = self._answered.get((kind.name, constant))
        if known is not None:
            return known
        found = entropy.made_of(value, call, lambda: calling().where)
        caller = calling() if found else None
        if caller is None or caller.importing or constant in (self._run_seed, self._run_seed % _WIDE):
            return None
        new = self._next_of(kind)
        if len(self._answered) < _MOST_REMEMBERED:
            self._answered[kind.name, constant] = new
        self._tell(call, caller.where, f"was seeded with {found}", new)
        return new

    def _process(self) -> tuple[Any, ...]:
        """What tells this process from the others of the run, the same in every run of one command."""
        if self._recorder.is_main_process:
            return self._forks
        name = _name_among_processes()
        arguments = () if name else tuple(word.replace(str(self.folder), "") for word in sys.argv)
        return (*self._forks, self._recorder.rank, *name, *arguments)

    def seed_of_process(self, seed: int) -> int:
        """What generators of the whole process start from: the run's seed, but in ranks after the first and in pools.

        Each of those has a number of its own, as it would have fresh entropy of its own. Programs that the training
        starts otherwise keep the run's seed: the one that trains may be started by a wrapper.
        """
        if tasks.current() and self._is_pools_process():
            return replacement(self._run_seed, "process", ("task", self._recorder.rank, *tasks.current()))
        if self._recorder.is_main_process and self._forks:
            return replacement(seed, "process", self._forks)
        name = () if self._recorder.is_main_process else _name_among_processes()
        if self._recorder.rank or name or self._forks:
            return replacement(seed, "process", (*self._forks, self._recorder.rank, *name))
        self._tell_ranks(seed)
        return seed

    def _is_pools_process(self) -> bool:
        """Whether what this thread begins a task of is a pool of processes: threads are no main threads."""
        is_other = bool(self._forks) or not self._recorder.is_main_process
        return is_other and threading.current_thread() is threading.main_thread()

    def follows_task(self, call: str) -> bool:
        """Whether a generator of the process starts anew in this task: not where the training has seeded it itself."""
        return call not in self._own and self._is_pools_process()

    def seeded_itself(self, call: str) -> None:
        """The training has seeded a generator; what a task seeds is no more than the task's."""
        if not tasks.current():
            self._own.add(call)

    def pool_made(self, name: str, of_threads: bool) -> None:
        """Tell that the tasks of a pool have streams of their own; threads have all generators of the process.

        Threads that a library keeps for itself draw nothing of the training's; those of joblib were asked for.
        """
        where, library, _ = calling()
        if of_threads and library and not name.startswith("joblib."):
            return None
        if of_threads:
            return self._recorder.left_open(f"threads of {name} at {where} take turns at generators of the process")
        message = f"tasks of {name} at {where} draw from streams of their own, whichever process has them"
        return self._recorder.note_at("process-seeded", (name, where), message)

    def _tell_ranks(self, seed: int) -> None:
        """The first rank tells what the others start from: most of them have nothing else to say, and leave no file."""
        sizes = (os.environ.get(name, "") for name in _NUMBERS_OF_RANKS)
        ranks = range(1, min(_MOST_RANKS_TOLD, max((int(size) for size in sizes if size.isdigit()), default=0)))
        if ranks:
            told = ", ".join(f"{rank} from {replacement(seed, 'process', (rank,))}" for rank in ranks)
            self._recorder.note("process-seeded", f"generators of other ranks start from seeds of their own: {told}")

    def _count_fork(self) -> None:
        """After a fork, in the parent."""
        self._forks_of_pools += tasks.makes_worker_of(os.getpid())

    def _become_child(self) -> None:
        """After a fork: the same requests must not give what the parent, or another of its children, gets.

        Processes of pools have numbers of their own: how many there were must not tell the others apart.
        """
        if tasks.makes_worker_of(os.getppid()):
            self._forks = (*self._forks, "pool", self._forks_of_pools)
        else:
            self._forks = (*self._forks, self._recorder.forks - self._forks_of_pools)
        self._made, self._lock = {}, threading.Lock()

    def _original(self, value: Any) -> Any:
        """The constant behind a number that was handed out here and now comes back, as `torch.initial_seed()` does."""
        number = whole_number(value)
        return self._given.get(number, value) if number is not None else value

    def _replaced(self, kind: Kind, constant: Any, original: Any) -> int:
        if constant in (self._run_seed, self._run_seed % _WIDE):
            return int(constant)  # the training was given the run's seed and uses it
        new = replacement(self._run_seed, kind.name, constant)
        if len(self._given) < _MOST_REMEMBERED:
            self._given[new] = original
        return new

    def took(self, value: str, places: set[str], *, passed_on: bool) -> bool:
        """Whether a constant in the source was replaced: at one of these lines, or by a library it was passed to."""
        return not places.isdisjoint(self._places) or (passed_on and value in self._passed_on)


def _name_among_processes() -> tuple[Any, ...]:
    """What multiprocessing calls this process, as far as it was said yet: the number comes after the name.

    joblib says the name as an argument, and imports much before it hands it on.
    """
    multiprocessing = sys.modules.get("multiprocessing.process")
    process = None if multiprocessing is None else multiprocessing.current_process()
    if process is not None and process.name != "MainProcess":
        return (process.name, *process._identity)  # noqa: SLF001
    words = getattr(sys, "argv", [])
    said = words.index("--process-name") + 1 if "--process-name" in words else len(words)
    return tuple(words[said : said + 1])


_active: SeedTaker | None = None
_thread = threading.local()
_failures: list[tuple[str, Exception]] = []


def activate(taker: SeedTaker | None) -> None:
    """From now on `taker` is asked; None for nobody."""
    global _active  # noqa: PLW0603  wrapped functions of a fork server find the run's taker here
    _active = taker
    while taker is not None and _failures:
        report(*_failures.pop())


def report(doing: str, error: Exception) -> None:
    """Write down what went wrong; in a fork server keep it for each run to write down."""
    if _active is None:
        _failures.append((doing, error))
    else:
        recording.report(_active.folder, doing, error)


def seed_of_process(seed: int) -> int:
    """What generators of the whole process are seeded with, here, where the run's seed is `seed`."""
    return seed if _active is None else _active.seed_of_process(seed)


def seed_processes(call: str, reseed: Callable[[int], Any], seed: int, *, asks_when_forked: bool = False) -> None:
    """From now on `reseed` is called where a process of a pool begins a task: a generator of the process starts anew.

    call: by which the training would seed it. asks_when_forked: the library takes fresh entropy in each forked child,
    so that it is seeded there, too. Its own hook comes first, if it was imported before this is called.
    """

    def seeded() -> None:
        with suspended():
            reseed(seed_of_process(seed))

    def task_begun() -> None:
        if _active is not None and _active.follows_task(call):
            seeded()

    tasks.at_begin(task_begun)
    if asks_when_forked:
        os.register_at_fork(after_in_child=seeded)


def taken(kind: Kind, call: str, value: Any, *, may_lack: bool = True) -> Any:
    """What to seed with instead of `value`; called where a generator is seeded. may_lack: None asks for entropy."""
    taker = _active
    if taker is None or is_suspended():
        return value
    try:
        if value is None:
            return taker.fresh(kind, call) if may_lack else None
        answer = taker.instead_of_new(kind, call, value)
        if answer is not None:
            return answer
        taker.seeded_itself(call)
        return taker.take(kind, call, value) if taker.takes_constants else value
    except Exception as error:  # this is the border between the worker and the training
        report(f"taking over {call}", error)
        return value


def is_suspended() -> bool:
    """Whether it is the worker that seeds or sets something now, or a function that was asked already."""
    return bool(getattr(_thread, "suspended", False))


@contextmanager
def suspended() -> Iterator[None]:
    """Take nothing over meanwhile: the worker seeds by itself, or a seeding function calls others."""
    before = is_suspended()
    _thread.suspended = True
    try:
        yield
    finally:
        _thread.suspended = before


def _is_wide(constant: Any) -> bool:
    return isinstance(constant, tuple) or (isinstance(constant, int) and constant >= _WIDE)
