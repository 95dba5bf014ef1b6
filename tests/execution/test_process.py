import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from isorun.errors import ExecutionError
from isorun.execution.keeper import descendants, processes
from isorun.execution.process import Exit, Keepers, KeptProcess, Marks, end_strays, find_strays, signal_name

CPU = min(os.sched_getaffinity(0))


@contextmanager
def kept(*command, grace=5.0, env=None, folder=Path("/tmp"), cpus=(CPU,)):
    keepers = Keepers()
    process = None
    try:
        process = KeptProcess(
            keepers, command, env=env or dict(os.environ), working_folder=folder, cpus=cpus, grace=grace
        )
        yield process
    finally:
        if process is not None:
            process.close()
        keepers.close()


def python(code, *arguments):
    return (sys.executable, "-S", "-c", code, *arguments)


def end_of(process):
    while (end := process.exit()) is None:
        pass
    return end


def first_line(process):
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(process.output_fd, 1)
    return line.decode().strip()


def all_output(process):
    return b"".join(iter(lambda: os.read(process.output_fd, 65536), b""))


def gone(pid, within=2.0):
    until = time.monotonic() + within
    while pid in processes():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_exit_codes_come_back(code):
    with kept(*python(f"raise SystemExit({code})")) as process:
        end = end_of(process)
    assert (end.exit_code, end.signal, end.kept) == (code, "", True)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGABRT", "SIGTERM", "SIGINT"])
def test_a_death_by_signal_is_told_by_its_name(name):
    with kept("/bin/bash", "-c", f"kill -{name} $$") as process:
        end = end_of(process)
    assert (end.exit_code, end.signal) == (None, name)


def test_a_signal_without_a_name_is_told_by_its_number():
    assert signal_name(40) == "signal 40"


def test_time_and_memory_include_children_that_were_waited_for():
    burn = "import time; x = bytearray(60_000_000); t = time.process_time()\nwhile time.process_time() - t < 0.3: pass"
    start_it = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', sys.argv[1]])"
    with kept(*python(start_it, burn)) as process:
        end = end_of(process)
    assert 0.3 <= end.cpu_seconds < 3
    assert end.wall_seconds >= 0.3
    assert 60_000_000 <= end.peak_memory_bytes < 200_000_000


def test_output_and_error_come_through_one_pipe_in_order():
    with kept("/bin/bash", "-c", "echo one; echo two >&2; echo three") as process:
        assert all_output(process) == b"one\ntwo\nthree\n"


def test_the_program_has_a_session_of_its_own_its_cpus_no_input_and_only_its_descriptors():
    code = (
        "import os, sys\n"
        "fds = [int(fd) for fd in os.listdir('/proc/self/fd')]\n"
        "open_fds = [fd for fd in fds if os.path.exists(f'/proc/self/fd/{fd}')]\n"
        "print(os.getsid(0) == os.getpid(), os.sched_getaffinity(0), repr(sys.stdin.read()), sorted(open_fds))"
    )
    with kept(*python(code)) as process:
        assert all_output(process).decode() == f"True {{{CPU}}} '' [0, 1, 2]\n"


def test_signals_that_python_ignores_have_their_usual_effect_in_the_program():
    with kept("/bin/bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}") as process:
        assert all_output(process) == b"y\n141\n"


def test_the_program_has_exactly_the_variables_it_was_given():
    env = {"ONLY": "this", "LONG": "x" * 100_000, "TEXT": "line\nbreak = sign ü"}
    with kept(*python("import os; print(sorted(os.environ.items()))"), env=env) as process:
        found = all_output(process).decode()
    expected = {**env, "LC_CTYPE": "C.UTF-8"}  # Python itself adds this one
    assert found.strip() in (str(sorted(expected.items())), str(sorted(env.items())))


@pytest.mark.alone
def test_children_left_behind_are_ended_and_named_also_those_that_left_the_session():
    command = "sleep 100 & (setsid sleep 100 &); setsid bash -c 'trap : TERM; sleep 50; sleep 50' & exit 0"
    with kept("/bin/bash", "-c", command) as process:
        keeper = process.keeper_pid
        began = time.monotonic()
        end = end_of(process)
        assert descendants(keeper) == []
    assert time.monotonic() - began < 5
    assert end.wall_seconds < 1
    assert sorted(set(end.left_behind)) == ["bash", "sleep"]


def test_helpers_that_end_just_after_the_program_are_not_left_behind():
    with kept("/bin/bash", "-c", "sleep 0.02 & exit 0") as process:
        assert end_of(process).left_behind == ()


def test_a_child_that_holds_the_output_open_does_not_hold_up_the_end():
    with kept("/bin/bash", "-c", "setsid sleep 100 & echo done") as process:
        assert end_of(process).exit_code == 0
        assert all_output(process) == b"done\n"


def test_asking_to_stop_reaches_every_descendant_and_leaves_them_time():
    script = "trap 'echo cleaned; exit 7' TERM; sleep 100 & echo ready; wait"
    with kept("/bin/bash", "-c", script) as process:
        assert first_line(process) == "ready"
        process.ask_to_stop()
        end = end_of(process)
        assert all_output(process) == b"cleaned\n"
    assert (end.exit_code, end.left_behind) == (7, ())


ASKED = """
import os, signal, sys, time
def asked(number, frame):
    time.sleep(0.3)
    print("asked", flush=True)
    sys.exit(4)
signal.signal(signal.SIGTERM, asked)
print("ready", flush=True)
time.sleep(100)
"""


def test_who_is_asked_together_with_all_processes_around_it_has_its_time():
    """As SLURM asks: everything below the job, from the top to the program itself."""
    keepers = Keepers()
    process = KeptProcess(keepers, python(ASKED), env=dict(os.environ), working_folder=Path("/tmp"), cpus=(CPU,))
    try:
        assert first_line(process) == "ready"
        process.exit()
        for pid in (keepers._server.pid, process.keeper_pid, process.pid):
            os.kill(pid, signal.SIGTERM)
            time.sleep(0.05)
        assert end_of(process).exit_code == 4
        assert all_output(process) == b"asked\n"
    finally:
        process.close()
        keepers.close()


@pytest.mark.alone
def test_who_ignores_the_request_is_killed_after_the_grace_time():
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(100)"
    with kept(*python(code), grace=0.3) as process:
        first_line(process)
        began = time.monotonic()
        process.ask_to_stop()
        end = end_of(process)
    assert end.signal == "SIGKILL"
    assert 0.25 < time.monotonic() - began < 3


def test_a_stopped_process_can_be_ended_too():
    with kept("/bin/bash", "-c", "echo ready; kill -STOP $$; sleep 100") as process:
        first_line(process)
        process.ask_to_stop()
        assert end_of(process).signal == "SIGTERM"


def test_children_that_flee_by_forking_are_all_killed():
    """Five processes, each of which all the time forks, leaves the session, and ends: none is there for long."""
    code = (
        "import os, time\n"
        "end = time.monotonic() + 20\n"
        "fleeing = any(os.fork() == 0 for _ in range(5))\n"
        "print('ready', flush=True)\n"
        "while fleeing and time.monotonic() < end:\n"
        "    time.sleep(0.01)\n"
        "    if os.fork() > 0:\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
        "time.sleep(20)\n"
    )
    with kept(*python(code), grace=0.1) as process:
        first_line(process)
        until = time.monotonic() + 5
        while len(descendants(process.keeper_pid)) < 5:  # one look may miss some of those that are just fleeing
            assert time.monotonic() < until
            time.sleep(0.05)
        process.kill()
        end_of(process)
        assert descendants(process.keeper_pid) == []


def test_a_program_that_cannot_be_executed_is_an_error_that_names_it(tmp_path):
    script = tmp_path / "train"
    script.write_text("no first line\n")
    script.chmod(0o755)
    with kept(str(script)) as process, pytest.raises(ExecutionError, match="Exec format error") as caught:
        end_of(process)
    assert str(script) in caught.value.what


def test_a_working_folder_that_does_not_exist_is_an_error(tmp_path):
    with kept("/bin/true", folder=tmp_path / "none") as process, pytest.raises(ExecutionError, match="cannot start a"):
        end_of(process)


STOPS_ITS_KEEPER = """
import os, signal, time
keeper = os.getppid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork() or os.setsid()
os.write(1, b"%d\\n" % os.getpid())  # one write: lines of two processes do not mix, also where print is unbuffered
while True: os.kill(keeper, signal.SIGSTOP)
"""


def test_a_keeper_that_its_program_stopped_goes_on_when_it_is_told_something():
    code = "import os, time; os.kill(os.getppid(), 19); print('stopped', flush=True); time.sleep(60)"
    with kept(*python(code)) as process:
        assert first_line(process) == "stopped"
        process.ask_to_stop()
        assert end_of(process).signal == "SIGTERM"


@pytest.mark.parametrize("how", ["asked", "closed"])
def test_a_keeper_that_is_stopped_again_and_again_is_killed_with_all_it_answers_for(monkeypatch, how):
    monkeypatch.setattr("isorun.execution.process.ANSWER_SECONDS", 0.5)
    with kept(*python(STOPS_ITS_KEEPER), grace=0.1) as process:
        pids = [int(first_line(process)), int(first_line(process))]
        if how == "asked":
            process.ask_to_stop()
            until = time.monotonic() + 0.8
            while time.monotonic() < until:
                process.see_to_it()
                time.sleep(0.05)
            end_of(process)
        process.close()
        assert all(gone(pid) for pid in (*pids, process.keeper_pid))


def test_a_stopped_process_that_forks_keepers_goes_on():
    keepers = Keepers()
    try:
        for _ in range(2):
            process = KeptProcess(
                keepers, python("pass"), env=dict(os.environ), working_folder=Path("/tmp"), cpus=(CPU,)
            )
            assert end_of(process).exit_code == 0
            process.close()
            os.kill(keepers._server.pid, signal.SIGSTOP)
    finally:
        keepers.close()


def test_when_the_keeper_is_killed_the_program_dies_and_that_is_said():
    with kept("/bin/sleep", "100") as process:
        process.exit()
        os.kill(process.keeper_pid, signal.SIGKILL)
        assert end_of(process) == Exit(None, "", 0.0, 0.0, 0, kept=False)
        assert gone(process.pid)


def test_when_the_process_that_forks_keepers_is_killed_runs_go_on_and_the_next_ones_start():
    keepers = Keepers()
    first = KeptProcess(keepers, ["/bin/sleep", "100"], env={}, working_folder=Path("/"), cpus=[CPU])
    keepers._server.kill()
    keepers._server.wait()
    second = KeptProcess(keepers, ["/bin/true"], env={}, working_folder=Path("/"), cpus=[CPU])
    assert end_of(second).exit_code == 0
    assert first.keeper_pid in processes()
    first.kill()
    assert end_of(first).signal == "SIGKILL"
    for process in (first, second):
        process.close()
    keepers.close()


def test_a_command_and_variables_larger_than_a_pipe_arrive_whole():
    long = "x" * 100_000
    with kept(
        *python("import os, sys; print(len(sys.argv[1]), len(os.environ['Y']))", long), env={"Y": long}
    ) as process:
        end_of(process)
        assert all_output(process) == b"100000 100000\n"


def test_the_program_has_no_file_of_its_keeper():
    with kept(*python("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")) as process:
        end_of(process)
        assert all_output(process) == b"[0, 1, 2, 3]\n"  # 3 is the listing itself


def test_a_program_gets_the_input_it_is_given(tmp_path):
    (tmp_path / "in").write_text("hello")
    keepers = Keepers()
    fd = os.open(tmp_path / "in", os.O_RDONLY)
    process = KeptProcess(keepers, ["/bin/cat"], env={}, working_folder=Path("/"), cpus=[CPU], input_fd=fd)
    end_of(process)
    assert all_output(process) == b"hello"
    os.close(fd)
    process.close()
    keepers.close()


@pytest.mark.chaos
def test_when_the_executor_is_killed_everything_it_started_is_gone_within_a_second():
    code = (
        "import os, time; from pathlib import Path; from isorun.execution.process import Keepers, KeptProcess\n"
        f"p = KeptProcess(Keepers(), ['/bin/bash', '-c', 'sleep 987 & (setsid sleep 987 &); sleep 987'], env={{}},"
        f" working_folder=Path('/'), cpus=[{CPU}])\n"
        "p.exit(); time.sleep(0.3); print(p.keeper_pid, flush=True); time.sleep(100)\n"
    )
    executor = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    keeper = int(executor.stdout.readline())
    pids = [keeper, *(item.pid for item in descendants(keeper))]
    assert len(pids) == 4
    executor.kill()
    executor.wait()
    executor.stdout.close()
    assert all(gone(pid, within=1.0) for pid in pids)


def test_no_descriptor_is_left_open():
    def count():
        return len(list(Path("/proc/self/fd").iterdir()))

    with kept("/bin/true") as process:
        end_of(process)
    before = count()
    for _ in range(5):
        with kept("/bin/true") as process:
            end_of(process)
    assert count() == before


def started(command, **options):
    process = subprocess.Popen(command, **options)
    time.sleep(0.1)
    return process


def test_processes_are_known_by_the_run_folder_in_their_variables(tmp_path):
    mine = started(["sleep", "60"], env={"ISORUN_RUN_DIR": str(tmp_path)})
    other = started(["sleep", "60"], env={"ISORUN_RUN_DIR": str(tmp_path) + "-2"})
    try:
        assert [item.pid for item in find_strays(Marks(tmp_path))] == [mine.pid]
        assert end_strays(Marks(tmp_path)) == ["sleep"]
        assert mine.wait(timeout=1) == -15
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_processes_are_known_by_their_session_and_by_the_output_they_hold(tmp_path):
    read_fd, write_fd = os.pipe()
    holder = started(["sleep", "60"], stdout=write_fd)
    in_session = started(["sleep", "60"], start_new_session=True)
    os.close(write_fd)
    try:
        found = find_strays(Marks(tmp_path, session=in_session.pid, pipe=os.fstat(read_fd).st_ino))
        assert {item.pid for item in found} == {holder.pid, in_session.pid}
    finally:
        for process in (holder, in_session):
            process.kill()
            process.wait()
        os.close(read_fd)


@pytest.mark.alone
def test_who_ignores_the_request_is_killed(tmp_path):
    command = ["bash", "-c", "trap '' TERM; echo up; while true; do sleep 0.05; done"]
    stubborn = subprocess.Popen(command, env={**os.environ, "ISORUN_RUN_DIR": str(tmp_path)}, stdout=subprocess.PIPE)
    stubborn.stdout.readline()
    end_strays(Marks(tmp_path))
    assert stubborn.wait(timeout=1) == -9
    stubborn.stdout.close()


def test_nothing_to_end_is_fine(tmp_path):
    assert end_strays(Marks(tmp_path)) == []
