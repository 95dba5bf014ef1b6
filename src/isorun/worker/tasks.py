"""Tasks of pools: each draws from streams of its own, whichever process or thread of the pool is given it.

Which of its processes gets a task is the scheduler's choice, and another one in every run. A task is known by what the
pool calls it: its number among those of the pool, and the pool's among those of the process. Where a process of a pool
begins one, the generators of the whole process start anew from the run's seed and that, unless the training has seeded
them itself; in a thread only generators without a seed can be told apart.

Reached are the functions that pools run in their processes: those of `multiprocessing` (and of `multiprocess`, its
twin), `concurrent.futures`, loky, and the batches of joblib, whose sizes follow the clock.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
from types import ModuleType
from typing import Any, Callable, Iterable, Iterator, Mapping

_POOLS_APART = 2**32

_here = threading.local()
_began: list[Callable[[], None]] = []
_noticed: list[Callable[[str, bool], None]] = []


def current() -> tuple[Any, ...]:
    """What tells the task of this thread from all others of the run, the same in every run; nothing outside of one."""
    key: tuple[Any, ...] = getattr(_here, "key", ())
    return key


def counted(what: Any) -> int:
    """How many of a kind this task has asked for before; outside of tasks, this thread."""
    counts: dict[Any, int] = _here.__dict__.setdefault("counts", {})
    counts[what] = counts.get(what, 0) + 1
    return counts[what] - 1


def begin(*key: Any) -> None:
    """A task begins in this thread, and the one before has ended."""
    _here.key, _here.counts = key, {}
    for began in _began:
        began()


def at_begin(began: Callable[[], None]) -> None:
    """Call `began` in each thread that begins a task."""
    _began.append(began)


def at_pools(noticed: Callable[[str, bool], None]) -> None:
    """Call `noticed` where a pool is made, with what it is called and whether it has threads and no processes."""
    _noticed.append(noticed)


def makes_worker_of(process: int) -> bool:
    """Whether a pool of this process makes one of its own processes now, in this thread or the one it was forked from.

    How many a pool makes may be chance: one is made anew after so many tasks, or where none is idle.
    """
    return bool(getattr(_here, "making", 0) == process)


def _follow_making(owner: Any, name: str) -> None:
    """While a method of a pool runs, what is forked is a process of the pool."""
    found = vars(owner).get(name)
    if found is None:
        return
    original: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(original)
    def making(*args: Any, **kwargs: Any) -> Any:
        before, _here.making = getattr(_here, "making", 0), os.getpid()
        try:
            return original(*args, **kwargs)
        finally:
            _here.making = before

    setattr(owner, name, staticmethod(making) if isinstance(found, staticmethod) else making)


def _notice(name: str, of_threads: bool) -> None:
    for noticed in _noticed:
        noticed(name, of_threads)


class _Told:
    """Stands for the queue that a pool's process takes tasks from, and tells of each."""

    def __init__(self, queue: Any, key_of: Callable[[Any], tuple[Any, ...]]) -> None:
        self._queue = queue
        self._key_of = key_of

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """As the queue's own."""
        item = self._queue.get(*args, **kwargs)
        if item is not None:
            begin(*self._key_of(item))
        return item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


def _follow_queue(module: ModuleType, name: str, key_of: Callable[[Any], tuple[Any, ...]]) -> None:
    """The function that a pool's process runs takes its tasks from a queue that tells."""
    original: Callable[..., Any] | None = getattr(module, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def worker(queue: Any, *args: Any, **kwargs: Any) -> Any:
        around = current()  # a pool that was made in a task and forked
        return original(_Told(queue, lambda item: (*around, *key_of(item))), *args, **kwargs)

    setattr(module, name, worker)


def _follow_pool(module: ModuleType) -> None:
    """`multiprocessing.pool`: a task has the number of its call among those of the process, and its own in the call."""
    _follow_queue(module, "worker", lambda task: ("pool", task[0], task[1]))
    _follow_making(module.Pool, "_repopulate_pool_static")
    _follow_made(module.Pool)


def _follow_executor(module: ModuleType) -> None:
    """`concurrent.futures.process` and loky: work has a number in its pool, which begins at one of the pool's own."""
    _follow_queue(module, "_process_worker", lambda item: ("executor", item.work_id))
    for making in ("_adjust_process_count", "_spawn_process"):  # older and newer Pythons
        _follow_making(module.ProcessPoolExecutor, making)
    _follow_made(module.ProcessPoolExecutor)


def _follow_made(pool: type) -> None:
    original: Callable[..., Any] = pool.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if getattr(self, "_queue_count", None) == 0:
            self._queue_count = _POOLS_APART * counted("executor")
        if not type(self).__module__.startswith("joblib."):
            _notice(type(self).__name__, "Thread" in type(self).__name__)

    pool.__init__ = initialise  # type: ignore[misc]


def _follow_threads(module: ModuleType) -> None:
    """`concurrent.futures.thread`: work is numbered where it is handed over, before any thread is given it."""
    work = module._WorkItem  # noqa: SLF001
    initialise, run = work.__init__, work.run

    @functools.wraps(initialise)
    def numbering(self: Any, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        thread = threading.current_thread()
        # Which thread of a pool a task is in is chance; what tells it then is the task.
        by = () if current() or thread is threading.main_thread() else (thread.name,)
        self.isorun_task = (*current(), "threads", *by, counted("threads"))

    @functools.wraps(run)
    def running(self: Any, *args: Any, **kwargs: Any) -> Any:
        begin(*self.isorun_task)
        return run(self, *args, **kwargs)

    work.__init__, work.run = numbering, running
    _follow_made(module.ThreadPoolExecutor)


def _follow_joblib(module: ModuleType) -> None:
    """`joblib.parallel`: a task has its place in the call of `Parallel`, in whichever batch it comes.

    The number of a batch's first task travels as a part of its state, which whoever knows nothing of it ignores.
    """
    parallel, batches = module.Parallel, module.BatchedCalls
    call, run, reduce = parallel.__call__, batches.__call__, batches.__reduce__
    dispatch = parallel._dispatch  # noqa: SLF001

    @functools.wraps(call)
    def counting(self: Any, iterable: Iterable[Any]) -> Any:
        self.isorun_call = (*current(), "joblib", counted("joblib"))
        if self.n_jobs != 1:
            _notice("joblib.Parallel", getattr(self._backend, "uses_threads", False))
        return call(self, iterable)

    @functools.wraps(dispatch)
    def dispatching(self: Any, batch: Any) -> Any:
        batch.isorun_tasks = (getattr(self, "isorun_call", ()), self.n_dispatched_tasks)
        return dispatch(self, batch)

    @functools.wraps(run)
    def running(self: Any) -> Any:
        key, first = getattr(self, "isorun_tasks", ((), 0))
        items, before = self.items, (current(), _here.__dict__.get("counts", {}))
        self.items = _told_items(items, key, first) if key else items
        try:
            return run(self)
        finally:
            self.items = items
            _here.key, _here.counts = before

    @functools.wraps(reduce)
    def reducing(self: Any) -> Any:
        reduced = reduce(self)
        return (*reduced, {"isorun_tasks": self.isorun_tasks}) if hasattr(self, "isorun_tasks") else reduced

    parallel.__call__, batches.__call__, batches.__reduce__ = counting, running, reducing
    parallel._dispatch = dispatching  # noqa: SLF001


def _told_items(items: Iterable[Any], key: tuple[Any, ...], first: int) -> Iterator[Any]:
    for number, item in zip(itertools.count(first), items):
        begin(*key, number)
        yield item


# Modules whose pools are followed once they are imported.
FOLLOWED: Mapping[str, Callable[[ModuleType], None]] = {
    "multiprocessing.pool": _follow_pool,
    "multiprocess.pool": _follow_pool,
    "concurrent.futures.process": _follow_executor,
    "concurrent.futures.thread": _follow_threads,
    "loky.process_executor": _follow_executor,
    "joblib.externals.loky.process_executor": _follow_executor,
    "joblib.parallel": _follow_joblib,
}
