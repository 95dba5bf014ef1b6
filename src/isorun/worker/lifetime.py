"""The worker's life in a training process: it records, seeds, watches imports, and closes at the interpreter's end."""

from __future__ import annotations

import atexit
import functools
import gc
import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Callable

from . import api, frameworks, jobs, levels, printing, ranks, runfolder, touched
from .frameworks.base import ImportWatcher, Watch
from .recorder import INITIAL_WEIGHTS, MAX_TELLING_PROCESSES, Recorder, activate, guarded
from .usercode import follow_imports, loading, main_script, started_in, tell_as_loaded, users_sources

if TYPE_CHECKING:
    from .auditing import Work
    from .levels import Settings
    from .seeding import SeedTaker
    from .seedsource import SourceFacts, SourceSeed

_MAX_SCANNED_FILES = 2000
_DRAWN_FROM = 2**32
_EDITED_TOLD = 3


def start(warm: bool = False) -> None:
    """Start the worker; nothing at all outside isorun. An error is written down and does not stop the training.

    warm: the process was forked from a server that has imported frameworks already.
    """
    folder = os.environ.get("ISORUN_RUN_DIR")
    if folder:
        guarded(Path(folder), "start of the worker", _start)(warm)


def _start(warm: bool) -> None:
    asked = levels.read_settings(os.environ, warm)
    # A training that was given `{seed}` fixes none by itself. Seeds of the fixed levels are few and small numbers: a
    # training may well have chosen the same, and their runs share them anyway, so there all are told.
    drawn = asked.run_seed if asked.seed is None else None
    recorder = Recorder(asked.folder, drawn_seed=drawn)
    activate(recorder)
    api.install_stand_in()
    _print_lines_at_once()
    _ask_input_for_the_size_of_the_terminal()
    if recorder.rank:
        printing.of_this_process().follow()
    guarded(asked.folder, "claim of the run folder", recorder.begin)()
    _die_of_interrupt_at_exit()
    follow_imports()
    closer = Closer(recorder, asked)
    guarded(asked.folder, "looking at files", closer.follow_files)()
    atexit.register(guarded(asked.folder, "end of the worker", closer.close))
    if asked.steps is not None and recorder.is_main_process:
        from . import auditing  # most runs are not timed

        closer.work = auditing.Work(recorder, asked.steps, closer.close)
    if levels.reaches_generators(os.environ):
        guarded(asked.folder, "reaching generators", _reach_generators)(asked, recorder, closer)
    _watch_frameworks(asked, recorder, closer)
    if warm and asked.seed is None and sys.flags.hash_randomization and not os.environ.get("PYTHONHASHSEED"):
        recorder.note(
            "shared-hash-seed", "the order of sets of strings is the same in all runs of one warm fork server"
        )


def _print_lines_at_once() -> None:
    """As on a terminal: a pipe would get lines in blocks, and who watches the run would see nothing for hours."""
    out = sys.stdout
    if hasattr(out, "reconfigure") and not out.line_buffering:
        out.reconfigure(line_buffering=True)


def _ask_input_for_the_size_of_the_terminal() -> None:
    """As on a terminal: output is a pipe, which has no size; standard input is a terminal where isorun has one."""
    of_terminal = os.get_terminal_size

    @functools.wraps(of_terminal)
    def get_terminal_size(fd: int = 1, /) -> os.terminal_size:
        try:
            return of_terminal(fd)
        except OSError:
            return of_terminal(0 if fd in (1, 2) else fd)

    os.get_terminal_size = get_terminal_size


def _reach_generators(asked: Settings, recorder: Recorder, closer: Closer) -> None:
    from . import entropy, seeding, tasks  # runs at `default` do without

    if os.environ.get(levels.AUDIT):
        from . import auditing

        auditing.begin(os.environ[levels.AUDIT], recorder, closer.close)
        return
    run_seed = asked.run_seed if asked.run_seed is not None else asked.seed
    if "streams" in asked.switches and run_seed is not None:
        from . import streams
        from .frameworks.switches import stream_request

        request = stream_request(asked.switches)
        if request is not None:
            closer.taker = streams.begin(request, asked.switches["streams"], run_seed, recorder)
            seeding.activate(closer.taker)
    elif run_seed is not None:
        fixes_seed = asked.seed is not None
        taker = seeding.SeedTaker(run_seed, recorder, takes_constants=asked.takes_seeds, answers_fresh=fixes_seed)
        closer.taker = taker
        seeding.activate(taker)
    if asked.seed is not None:
        if closer.taker is not None:
            tasks.at_pools(closer.taker.pool_made)
        entropy.watch(entropy.tell_open(recorder) if asked.fixes_kernels else None)
    if asked.fixes_kernels:
        from . import answering

        wanted = functools.partial(levels.level_environment, asked.level, asked.seed, asked.threads, {})
        counts, told = levels.THREAD_COUNTS, frameworks.told_variables
        answering.HeldVariables(recorder, wanted, levels.is_as_strict, counts, told).hold()


def _watch_frameworks(asked: Settings, recorder: Recorder, closer: Closer) -> None:
    watcher = ImportWatcher(frameworks.PACKAGES.keys(), recorder.imported)
    reached = levels.reaches_generators(os.environ)
    for name in frameworks.WATCHED:
        if reached:
            prepare = functools.partial(_reach_and_prepare, name, asked, recorder, closer)
        else:
            prepare = functools.partial(_prepare, name, asked, recorder, closer)
        watcher.watch(name, guarded(asked.folder, f"preparing {name}", prepare))
    if asked.seed is not None and "streams" not in asked.switches:
        from . import tasks

        for name, follow in tasks.FOLLOWED.items():
            watcher.watch(name, guarded(asked.folder, f"following {name}", follow))
    for name in frameworks.FILES_OPENED:
        watcher.watch(name, guarded(asked.folder, f"following {name}", touched.follow))
    for name in frameworks.RANKS_JOINED:
        watcher.watch(name, guarded(asked.folder, f"following {name}", ranks.follow))
    watcher.watch(jobs.MODULE, guarded(asked.folder, "following jobs", jobs.follow))
    watcher.install()


def _prepare(name: str, asked: Settings, recorder: Recorder, closer: Closer, module: ModuleType) -> None:
    framework = frameworks.of_module(name)
    if asked.switches and name == framework.name:
        guarded(asked.folder, f"switching {name}", framework.switch)(module, asked.switches)
    watch = framework.prepare(name, module, asked, recorder)
    if watch is not None:
        closer.watches.append(watch)
    if closer.work is not None and name == framework.name:
        framework.follow_steps(module, closer.work.stepped)


def _reach_and_prepare(name: str, asked: Settings, recorder: Recorder, closer: Closer, module: ModuleType) -> None:
    from . import seeding

    reach(name, module)
    here = asked if asked.seed is None else asked._replace(seed=seeding.seed_of_process(asked.seed))
    with seeding.suspended():  # the level's own seeds are not the training's
        _prepare(name, here, recorder, closer, module)
        _part_streams(name, asked, module)
    if os.environ.get(levels.AUDIT):
        from . import auditing

        looking = auditing.sight()
        if looking is not None:
            frameworks.of_module(name).look(name, module, looking)


def _part_streams(name: str, asked: Settings, module: ModuleType) -> None:
    if "streams" in asked.switches:
        from . import streams

        parted = streams.active()
        if parted is not None:
            doing = f"parting the streams of {name}"
            guarded(asked.folder, doing, frameworks.of_module(name).part_streams)(name, module, parted)


_reached: set[str] = set()


def reach(name: str, module: ModuleType) -> None:
    """Wrap what starts streams of random numbers in a module, once a process; a forked child has its server's."""
    from . import seeding

    if name in _reached:
        return
    _reached.add(name)
    try:
        frameworks.of_module(name).take_seeds(name, module)
    except Exception as error:  # a version of a framework that looks different must not stop the training
        seeding.report(f"reaching the generators of {name}", error)


def reach_when_imported() -> None:
    """In a fork server: wrap each framework as soon as it is imported, because libraries take names from it."""
    watcher = ImportWatcher()
    for name in frameworks.WATCHED:
        watcher.watch(name, functools.partial(reach, name))
    watcher.install()


def look_ahead() -> None:
    """In a fork server: do once what comes to the same in all children, and leaves no trace."""
    Recorder(Path(os.devnull))


class Closer:
    """The worker's last work, after the training's own exit handlers: digests, seeds, environment, end.

    It runs once, when the interpreter shuts down in an orderly way, in every process that has something to record.
    """

    def __init__(self, recorder: Recorder, asked: Settings) -> None:
        self.watches: list[Watch] = []
        self.taker: SeedTaker | None = None
        self.work: Work | None = None
        self._recorder = recorder
        self._asked = asked
        # Asked now: Python takes `__file__` from the main module before exit handlers run.
        self._script = main_script()
        if self._script is not None:
            loading(str(self._script))
        self._folder = started_in()
        self._seed_option = ""
        self._touched: touched.TouchedFiles | None = None

    def follow_files(self) -> None:
        """From now on the files are looked at that the training writes."""
        self._touched = touched.begin(str(self._recorder.folder))

    def close(self) -> None:
        """Record what can only be known at the end. `closing` says how long this took: it is not the training's."""
        if self._recorder.is_forked_child:
            return
        if self._touched is not None:
            self._touched.end()
        gc.disable()  # all that is left to do is short, and a loaded framework makes every collection long
        if self.work is not None:
            self.work.end()
        ended = self._recorder.seconds
        for watch in self.watches:
            self._attempt("digest of the final weights", watch.finish)
        self._attempt("telling what was printed", self._tell_printed)
        self._attempt("coming forward", self._come_forward)
        if not self._recorder.is_writing:
            return
        if self._recorder.only_joined:  # the first rank tells the rest for all
            self._recorder.finish({"kind": "end", "t": ended, "closing": 0})
            return
        self._attempt("search for a digest", self._tell_missing_digest)
        self._attempt("search for seeds in the source", self._record_seeds)
        self._attempt("fingerprint of the environment", self._record_environment)
        closing = round(self._recorder.seconds - ended, 6)
        self._recorder.finish({"kind": "end", "t": ended, "closing": closing})

    def _attempt(self, doing: str, work: Callable[[], None]) -> None:
        guarded(self._recorder.folder, doing, work)()

    def _come_forward(self) -> None:
        """A script with a framework may have trained, also where it logged nothing and has no weights that are known.

        Else a launcher in Python, which started it, would stand for it, with its interpreter and packages.
        """
        recorder = self._recorder
        if recorder.is_writing or recorder.rank or self._script is None:
            return
        if not any(framework.name in frameworks.PACKAGES for framework, _ in frameworks.imported()):
            return
        if runfolder.number_of_files(recorder.folder) <= MAX_TELLING_PROCESSES:
            recorder.come_forward()

    def _tell_printed(self) -> None:
        printed = printing.of_this_process()
        if self._recorder.rank and printed.counts:
            self._recorder.tell_printed(printed.counts, is_cut=printed.is_cut)

    def _tell_missing_digest(self) -> None:
        """Say why a run has no digest, unless that was said; nothing where no framework is that has weights."""
        recorder = self._recorder
        told = recorder.digest_names - {INITIAL_WEIGHTS}
        if not recorder.is_main_process or told or recorder.has_noted("no-digest"):
            return
        # What forked children do is not seen: they may be those that train.
        others = "; it forked others, and what these trained is not digested" if recorder.forks else ""
        for framework, _ in frameworks.imported():
            if framework.undigested:
                recorder.note("no-digest", f"{framework.name}: {framework.undigested}{others}")

    def _record_seeds(self) -> None:
        options = [self._facts[path].option for path in sorted(self._facts, key=lambda path: path != self._script)]
        self._seed_option = next(filter(None, options), "")
        found = [(path, seed) for path, facts in self._facts.items() for seed in facts.seeds]
        seen = {framework.watched_seed_call for framework in frameworks.every()} - {""}
        if not self._takes_constants:
            for call in seen:
                self._record_seed_set([item for item in found if item[1].call == call], call)
        for path, seed in found:
            if seed.call not in seen and not self._was_taken(path, seed):
                self._record_source_seed(path, seed)

    @property
    def _takes_constants(self) -> bool:
        return self.taker is not None and self.taker.takes_constants

    def _record_seed_set(self, constants: list[tuple[Path, SourceSeed]], call: str) -> None:
        """Tell the seed that a generator ended with; one as wide as fresh ones are drawn counts if it was written."""
        seed = next((seed for watch in self.watches for seed in [watch.seed_set()] if seed is not None), None)
        if seed is not None and (seed < _DRAWN_FROM or any(item.value == str(seed) for _, item in constants)):
            where = f"{constants[0][0]}:{constants[0][1].line}" if constants else ""
            self._recorder.seeded(call, str(seed), where)

    def _was_taken(self, path: Path, seed: SourceSeed) -> bool:
        places = {f"{path}:{line}" for line in range(seed.line, seed.last_line + 1)}
        passed_on = seed.is_setting and not seed.is_native
        return self.taker is not None and self.taker.took(seed.value, places, passed_on=passed_on)

    def _record_source_seed(self, path: Path, seed: SourceSeed) -> None:
        place = f"{path}:{seed.line}"
        self._recorder.seeded(f"{seed.call} (in source)", seed.value, place)
        if self._takes_constants and seed.is_setting:
            told = f"{seed.call} {seed.value} at {place}"
            self._recorder.note("seed-not-taken", f"{told} was not taken over: no generator was seen to get it")

    def _record_environment(self) -> None:
        from . import fingerprint, usercode

        effective = fingerprint.effective_environment(self._script)
        effective.update(usercode.sources_read(self._facts, self._folder))
        edited = tell_as_loaded(effective, self._folder)
        if edited:
            named = ", ".join(edited[:_EDITED_TOLD]) + (", …" if len(edited) > _EDITED_TOLD else "")
            told = "the record has the hash of what was loaded; what was started later may have loaded the other"
            self._recorder.note("edited-while-running", f"source was edited after it was loaded: {named}; {told}")
        if self._seed_option:
            effective["seed_option"] = self._seed_option
        files = {} if self._touched is None else self._touched.told()
        if files:
            effective["files"] = files
        inputs = {} if self._touched is None else self._touched.inputs()
        if inputs:
            effective["inputs"] = inputs
        if self._asked.fixes_kernels:
            effective["open"] = self._left_open()
        if os.environ.get(levels.AUDIT):
            from . import auditing

            effective["audit"] = auditing.told()
        if self.work is not None:
            effective["work"] = self.work.told()
        if "streams" in self._asked.switches:
            from . import streams

            parted = streams.active()
            effective["streams"] = None if parted is None else parted.told()
        self._recorder.write({"kind": "environment", "t": self._recorder.seconds, "effective": effective})

    def _left_open(self) -> list[str]:
        """What the level could not hold, as far as was seen: where to look if runs differ all the same."""
        asked = self._asked
        wanted = {**levels.level_environment(asked.level, asked.seed, asked.threads, {}), **asked.thread_variables}
        changed = [
            f"{name} is {os.environ.get(name, 'not set')!r}, not {value!r}"
            for name, value in sorted(wanted.items())
            if name not in levels.OWN_VARIABLES and not set(value.split()) <= set(os.environ.get(name, "").split())
        ]
        held = [what for framework, module in frameworks.imported() for what in framework.left_open(module)]
        forked = self._recorder.forks
        children = [f"{forked} processes were forked, which may take turns"] if forked else []
        return [*self._recorder.open_ends, *changed, *held, *children]

    @functools.cached_property
    def _facts(self) -> dict[Path, SourceFacts]:
        """What the training's own source files say."""
        from . import seedsource  # helpers that only start and end do without

        found = users_sources(sys.modules, self._script, self._folder, os.environ)[:_MAX_SCANNED_FILES]
        origin = os.environ.get(levels.COPY_OF)
        return seedsource.facts_of(found, self._folder, Path(origin) if origin else None)


def _die_of_interrupt_at_exit() -> None:
    """Register, before other exit handlers and so to run after them, what makes an interrupted program die of SIGINT.

    Python does so by itself, but forgets it when an exit handler evaluates source, as named tuples do when defined.
    """
    atexit.register(_die_if_interrupted)


def _die_if_interrupted() -> None:
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
