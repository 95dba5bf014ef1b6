"""Trainings that misbehave in every way we know, beside ones that behave: each harms itself alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from oracle import Workplace, living

from isorun.execution import RunEnded
from isorun.execution.process import Marks, find_strays
from isorun.study.records import RunRecord, RunState, sealed_and_gzipped
from isorun.testing.executor_contract import carried_out

pytestmark = pytest.mark.chaos

TRAINING = """
import os, signal, subprocess, sys, time
import isorun
isorun.log(epoch=1, acc=0.5)
match sys.argv[1]:
    case "prints":
        for _ in range(30):
            sys.stdout.write("word " * 200_000 + "\\n")
    case "hangs":
        time.sleep(300)
    case "forks":
        if os.fork() == 0:
            os.setsid()
            time.sleep(300)
        subprocess.Popen(["sleep", "300"], start_new_session=True)
    case "segfaults":
        os.kill(os.getpid(), signal.SIGSEGV)
    case "is-killed":
        os.kill(os.getpid(), signal.SIGKILL)
isorun.result(test_acc=0.75)
"""
KINDS = ("prints", "hangs", "forks", "segfaults", "is-killed", "behaves")
STUDY = "\n".join(
    [
        'levels = ["fixed-seed"]',
        *(f'[approaches.{kind}]\ncommand = "python train.py {kind}"' for kind in KINDS),
        '[policy]\ntime_limit = "2s"',
    ]
)
ENDINGS = {
    "prints": (RunState.FINISHED, ""),
    "hangs": (RunState.TIMED_OUT, "still running after the time limit of 2 s"),
    "forks": (RunState.FINISHED, ""),
    "segfaults": (RunState.FAILED, "killed by SIGSEGV"),
    "is-killed": (RunState.FAILED, "killed by SIGKILL (out of memory?)"),
    "behaves": (RunState.FINISHED, ""),
}


@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_each_training_that_misbehaves_harms_itself_alone(launch: str, tmp_path: Path):
    workplace = Workplace(tmp_path)
    (tmp_path / "train.py").write_text(TRAINING)
    workplace.study.write_text(STUDY)
    done = workplace.run("--launch", launch, "--jobs", min(2, len(os.sched_getaffinity(0))), "--json")
    assert done.process.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["finished"] == 3
    assert living(workplace.mark) == []
    records = {record.cell.approach: record for record in workplace.records()}
    assert {kind: (record.state, record.reason) for kind, record in records.items()} == ENDINGS
    assert all(record.series["acc"].values == (0.5,) for record in records.values())
    assert {note.code for note in records["prints"].notes} >= {"output-cut"}
    assert {note.code for note in records["forks"].notes} >= {"left-behind"}
    assert records["behaves"].results == {"test_acc": 0.75}
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 20_000_000


FINISHED, FAILED, TIMED_OUT = RunState.FINISHED, RunState.FAILED, RunState.TIMED_OUT
HERE = "import os, pathlib, signal, sys, time\nhere = pathlib.Path(os.environ['ISORUN_RUN_DIR'])\nimport isorun\n"
WAYS: dict[str, tuple[RunState | None, str]] = {
    # Ends and signals.
    "a text as exit code": (FAILED, "sys.exit('no data')"),
    "an exit code above 255": (FAILED, "os._exit(300)"),
    "an exception at exit": (FINISHED, "import atexit; atexit.register(lambda: 1 / 0)"),
    "too deep a recursion": (FAILED, "f = lambda: f(); f()"),
    "no memory": (FAILED, "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28,) * 2); b'x' * (1 << 29)"),
    "aborts": (FAILED, "os.abort()"),
    "stops itself": (TIMED_OUT, "os.kill(os.getpid(), signal.SIGSTOP)"),
    "ignores every request": (TIMED_OUT, "signal.signal(15, signal.SIG_IGN); time.sleep(300)"),
    "a thread that never ends": (
        TIMED_OUT,
        "import threading; threading.Thread(target=time.sleep, args=(300,)).start()",
    ),
    "kills its keeper": (FAILED, "os.kill(os.getppid(), signal.SIGKILL); time.sleep(300)"),
    "stops its keeper": (FINISHED, "os.kill(os.getppid(), signal.SIGSTOP)"),
    "stops its keeper and hangs": (TIMED_OUT, "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(300)"),
    "kills its group": (FAILED, "os.killpg(0, signal.SIGKILL)"),
    "becomes another program": (TIMED_OUT, "os.execv('/bin/sleep', ['sleep', '300'])"),
    "a limit on its CPU time": (
        FAILED,
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile 1: pass",
    ),
    # Processes.
    "a daemon that holds the output": (FINISHED, "if os.fork() == 0:\n    os.setsid(); time.sleep(300)"),
    "fifty children": (FINISHED, "for _ in range(50):\n    if os.fork() == 0: time.sleep(300)"),
    "a child that forks on": (FINISHED, "if os.fork() == 0:\n    while os.fork() == 0: os.setsid(); time.sleep(.05)"),
    # Output.
    "prints without end": (TIMED_OUT, "while 1: print('x' * 10_000)"),
    "a line without end": (TIMED_OUT, "while 1: sys.stdout.write('x' * 10_000)"),
    "bytes that are no text": (FINISHED, "os.write(1, os.urandom(1 << 17))"),
    "NUL and escape sequences": (FINISHED, "os.write(1, b'\\0\\x1b[2J\\x1b]0;title\\x07acc: 0.5\\n' * 100)"),
    "closes its output": (FINISHED, "os.close(1); os.close(2)"),
    "closes all files": (None, "os.closerange(0, 256)"),
    "JSON nested deep": (FINISHED, "print('[' * 100_000); print('{\"a\":' * 50_000)"),
    "numbers of 400 digits": (FINISHED, "print('acc:', '9' * 400); print('{\"acc\": ' + '9' * 5000 + '}')"),
    "a metric with a long name": (FINISHED, "print('m' * 100_000 + ': 1.0')"),
    # What is logged.
    "steps that are not finite": (FINISHED, "isorun.log(epoch=float('nan'), y=1); isorun.log(float('inf'), y=1)"),
    "a name of thousands of characters": (FINISHED, "isorun.log(**{'x' * 5000: 1.0, 'x' * 4128: 2.0})"),
    "a limit on the size of files": (
        FAILED,
        "import resource; isorun.log(y=1); resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); isorun.log(y=2)",
    ),
    "closes all files and logs on": (FINISHED, "isorun.log(y=1); os.closerange(3, 256); isorun.log(y=2)"),
    "a number too large for a float": (FINISHED, "isorun.log(y=10**400)"),
    "values that are not finite": (FINISHED, "isorun.log(y=float('nan'), z=float('-inf'))"),
    "values that are no numbers": (None, "isorun.log(y=object(), z='word', epoch=[])"),
    "half a surrogate as a name": (None, "isorun.log(**{'\\udcff': 1.0})"),
    # Its folder.
    "a FIFO as events": (None, "os.mkfifo(here / 'events-99999.jsonl')"),
    "a link to endless zeros as events": (None, "(here / 'events-99999.jsonl').symlink_to('/dev/zero')"),
    "a folder as events": (None, "(here / 'events-99999.jsonl').mkdir()"),
    "events of three gigabytes": (None, "f = open(here / 'events-99999.jsonl', 'wb'); f.truncate(3 << 30)"),
    "events that are unlinked": (FAILED, "isorun.log(y=1); (here / 'events.jsonl').unlink(); isorun.log(y=2)"),
    "events cut short": (FAILED, "isorun.log(y=1); os.truncate(here / 'events.jsonl', 100)"),
    "noise as events": (FAILED, "isorun.log(y=1); (here / 'events.jsonl').write_bytes(os.urandom(1000))"),
    "a link instead of events": (
        None,
        "isorun.log(y=1); e = here / 'events.jsonl'; e.unlink(); e.symlink_to('/etc/passwd')",
    ),
    "events and their list unlinked": (
        FAILED,
        "isorun.log(y=1); (here / 'events.jsonl').unlink(); (here / 'writers.txt').unlink(); isorun.log(y=2)",
    ),
    "its folder made anew": (
        FAILED,
        "import shutil; isorun.log(y=1); shutil.rmtree(here); here.mkdir(); (here / 'request.json').write_text('{}')",
    ),
    "lines without numbers": (
        FAILED,
        "import zlib; b = b'{}'; (here / 'events-7.jsonl').write_bytes(b'2 %08x %s\\n' % (zlib.crc32(b), b))",
    ),
    "its folder removed": (FAILED, "import shutil; isorun.log(y=1); shutil.rmtree(here)"),
    "a file instead of its folder": (FAILED, "import shutil; shutil.rmtree(here); here.write_text('x')"),
    "a folder where the record goes": (
        FINISHED,
        "(here / 'record.json.gz').mkdir(); (here / 'record.json.gz.tmp').mkdir()",
    ),
    "thousands of files": (FINISHED, "for n in range(3000): (here / f'events-{n}.txt').touch()"),
    "another request and job": (FINISHED, "for n in ('job', 'request'): (here / f'{n}.json').write_text('[' * 9999)"),
    "no rights on its folder": (None, "here.chmod(0)"),
    # Around it.
    "its script removed": (FINISHED, "os.remove(sys.argv[0])"),
    "another working folder": (FINISHED, "os.chdir('/')"),
    "another environment": (FINISHED, "os.environ.clear(); isorun.log(y=1)"),
}


@pytest.mark.long
def test_forty_ways_to_misbehave_each_end_in_a_record(tmp_path: Path):
    from isorun.execution.local import LocalExecutor
    from isorun.testing.executor_contract import job_for

    executor = LocalExecutor(tmp_path / "runs", min(2, len(os.sched_getaffinity(0))), launch="fresh", grace_seconds=0.3)
    limits = {TIMED_OUT: 2.0}  # these wait for theirs
    jobs = {
        way: job_for(HERE + script, tmp_path, n, time_limit_seconds=limits.get(end, 4.0), level="fixed-seed")
        for n, (way, (end, script)) in enumerate(WAYS.items())
    }
    last = job_for("import isorun; isorun.result(test_acc=0.75)", tmp_path, len(WAYS))
    try:
        ended = {
            event.run_id: event.record
            for event in carried_out(executor, [*jobs.values(), last])
            if isinstance(event, RunEnded)
        }
    finally:
        executor.close()
    assert len(WAYS) >= 40
    wrong = {
        way: (ended[jobs[way].run_id].state, ended[jobs[way].run_id].reason)
        for way, (expected, _) in WAYS.items()
        if expected is not None and ended[jobs[way].run_id].state is not expected
    }
    assert not wrong
    assert ended[last.run_id].results == {"test_acc": 0.75}
    for record in ended.values():
        assert RunRecord.from_json(record.to_json()) == record or "finite" in str(record.notes)
        b"".join(sealed_and_gzipped(record))
    assert [item for item in find_strays(Marks(tmp_path)) if item.name == "sleep"] == []
