"""The local executor: every run is a process of its own on this machine, pinned to its own CPUs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from isorun.errors import ExecutionError, known_names
from isorun.execution.assemble import Ended, assemble
from isorun.execution.base import AbstractExecutor, Job
from isorun.execution.events import EventLog
from isorun.execution.interpreter import Interpreters
from isorun.execution.output import BoundedLog, LineSplitter, readable_tail
from isorun.execution.plan import Plan, plan, write_request
from isorun.execution.process import GRACE_SECONDS, Exit, KeptProcess
from isorun.execution.runfolder import read_run_folder
from isorun.execution.slots import Slots
from isorun.execution.sources import Found, LineMetrics, read_files
from isorun.execution.watch import Running, Watched, watch
from isorun.study.records import Note, RunRecord

__all__ = ["LocalExecutor"]
