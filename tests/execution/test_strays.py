import os
import subprocess
import time

from isorun.execution.strays import Marks, end_strays, find_strays


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


def test_who_ignores_the_request_is_killed(tmp_path):
    command = ["bash", "-c", "trap '' TERM; echo up; while true; do sleep 0.05; done"]
    stubborn = subprocess.Popen(command, env={**os.environ, "ISORUN_RUN_DIR": str(tmp_path)}, stdout=subprocess.PIPE)
    stubborn.stdout.readline()
    end_strays(Marks(tmp_path))
    assert stubborn.wait(timeout=1) == -9
    stubborn.stdout.close()


def test_nothing_to_end_is_fine(tmp_path):
    assert end_strays(Marks(tmp_path)) == []
