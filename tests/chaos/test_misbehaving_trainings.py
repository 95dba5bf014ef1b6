"""Trainings that print without end, hang, leave children behind or die of a signal, beside one that behaves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from oracle import Workplace, living

from isorun.study.records import RunState

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
