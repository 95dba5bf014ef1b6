"""`isorun serve` as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading


class Served:
    """A server with a registry. said: what it printed to its terminal, so far."""

    def __init__(self, folder, *words, port=0, env=None):
        command = [sys.executable, "-m", "isorun", "serve", "--json", "--port", str(port), *map(str, words)]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self._lines, self._told = [], threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        told = ""
        while not told.endswith("}\n"):
            line = self._process.stdout.readline()
            assert line, self.said
            told += line
        self.url = json.loads(told)["url"]

    @property
    def said(self):
        return "".join(self._lines)

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def one_time_token(self):
        assert self._told.wait(20)
        return next(line.strip() for line in self._lines if line.strip().startswith("isorun_setup_"))

    def kill(self):
        """SIGKILL: whatever it was doing."""
        self._end(signal.SIGKILL)

    def close(self):
        """The exit code, once it was asked to end."""
        return self._end(signal.SIGTERM)

    def _end(self, number):
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(timeout=30)
        self._process.stdout.close()
        return code

    def _listen(self):
        with self._process.stderr as lines:
            for line in lines:
                self._lines.append(line)
                if "isorun_setup_" in line:
                    self._told.set()
