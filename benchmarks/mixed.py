"""Mixed models against lme4, lmerTest and pbkrtest, in one run on one core each.

`measure()` runs every side in a process of its own with one math thread and takes CPU seconds, so that the ratios
compare algorithms and not thread pools, and hold on a busy machine. R's linear algebra library matters for the large
model, so it is named. Without Rscript and its packages only our own times are given, and no ratio is claimed.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CROSSED = "metric ~ experiment + (1|config) + (1|seed) + (1|repeat_id)"
LECTURES = "y ~ 1 + (1|s) + (1|d) + (1|dept:service)"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

R_SCRIPT = """
suppressMessages({library(lme4); library(lmerTest)})
args <- commandArgs(trailingOnly = TRUE)
data <- read.csv(file.path(args[1], "crossed.csv"))
formula <- metric ~ experiment + (1|config) + (1|seed) + (1|repeat_id)
seconds <- function(code) sum(system.time(code)[c("user.self", "sys.self")])
invisible(summary(lmerTest::lmer(formula, data)))
satterthwaite <- median(replicate(7, seconds(summary(lmerTest::lmer(formula, data)))))
fit <- lmerTest::lmer(formula, data)
kenward_roger <- seconds(summary(fit, ddf = "Kenward-Roger"))
data(InstEval)
lectures <- seconds(big <- lme4::lmer(y ~ 1 + (1|s) + (1|d) + (1|dept:service), InstEval))
write.csv(InstEval, file.path(args[1], "lectures.csv"), row.names = FALSE, quote = FALSE)
cat(sprintf('{"satterthwaite": %.6f, "kenward_roger": %.6f, "lectures": %.6f, "loglik": %.10f, "blas": "%s"}',
  satterthwaite, kenward_roger, lectures, as.numeric(logLik(big)), basename(dirname(extSoftVersion()["BLAS"]))))
"""


def measure() -> list[dict[str, Any]]:
    """The rows of the benchmark report."""
    with tempfile.TemporaryDirectory() as folder:
        write_crossed(Path(folder) / "crossed.csv")
        peer = run_r(folder)
        if peer is None:
            lectures(Path(folder) / "lectures.csv")
        own = {part: run_own(part, folder) for part in ("crossed", "lectures")}
    return report(own, peer)


def report(own: dict[str, dict[str, float]], peer: dict[str, Any] | None) -> list[dict[str, Any]]:
    crossed, large = own["crossed"]["seconds"], own["lectures"]
    detail = f"ours {crossed * 1e3:.1f} ms: fit, both df methods, LRTs, F tests, 66 differences"
    rows = [row("peak memory of 73,421 crossed rows", large["megabytes"], 500.0, "MB", "whole process", at_most=True)]
    if peer is None:
        rows.append(
            row("1,074 crossed rows, all tests", crossed * 1e3, None, "ms", "no Rscript with lme4 to compare with")
        )
        rows.append(row("73,421 crossed rows, fit", large["seconds"], None, "s", "simulated; no Rscript with lme4"))
        return rows
    ratios = (
        ("1,074 rows, all tests, against lme4 + lmerTest Satterthwaite", peer["satterthwaite"], crossed, 10.0, detail),
        ("1,074 rows, all tests, against R's Kenward-Roger table", peer["kenward_roger"], crossed, 1000.0, detail),
        ("InstEval fit against lmer", peer["lectures"], large["seconds"], 5.0, f"ours {large['seconds']:.2f} s"),
    )
    for name, theirs, ours, target, words in ratios:
        rows.append(row(name, theirs / ours, target, "times faster", f"{words}; R with {peer['blas']} {theirs:.3f} s"))
    gap = large["loglik"] - peer["loglik"]
    rows.append(row("InstEval log-likelihood above lmer's", gap, -1e-5, "", "higher is better; the same model"))
    return rows


def row(
    name: str, measured: float, target: float | None, unit: str, detail: str, *, at_most: bool = False
) -> dict[str, Any]:
    ok = None if target is None else (measured <= target if at_most else measured >= target)
    return {"name": name, "measured": measured, "target": target, "unit": unit, "ok": ok, "detail": detail}


def run_r(folder: str) -> dict[str, Any] | None:
    """R's times, or None without R or one of its packages."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    script = Path(folder) / "peer.R"
    script.write_text(R_SCRIPT)
    done = subprocess.run(
        [rscript, str(script), folder], capture_output=True, text=True, check=False, env={**os.environ, **ONE_THREAD}
    )
    if done.returncode != 0:
        print(f"Rscript failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    times: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return times


def run_own(part: str, folder: str) -> dict[str, float]:
    """Our times, from a fresh process."""
    command = [sys.executable, __file__, part, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **ONE_THREAD})
    times: dict[str, float] = json.loads(done.stdout)
    return times


def own_crossed(folder: Path) -> dict[str, float]:
    from isorun.analysis.mixed.model import mixed_model

    data = read_csv(folder / "crossed.csv")
    mixed_model(data, CROSSED)
    times = [timed(lambda: mixed_model(data, CROSSED)) for _ in range(31)]
    return {"seconds": statistics.median(times)}


def own_lectures(folder: Path) -> dict[str, float]:
    from isorun.analysis.mixed.fit import fit_problem, prepare

    data = read_csv(folder / "lectures.csv")
    start = time.process_time()
    fit = fit_problem(prepare(data, LECTURES))
    seconds = time.process_time() - start
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "megabytes": megabytes, "loglik": fit.log_likelihood}


def timed(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def write_crossed(path: Path) -> None:
    """12 experiments x 5 configs x 5 seeds x 5 repeats with rows missing: 1,074 rows."""
    rng = np.random.default_rng(7)
    grid = np.stack(np.meshgrid(*map(np.arange, (12, 5, 5, 5)), indexing="ij"), axis=-1).reshape(-1, 4)
    grid = grid[np.sort(rng.choice(len(grid), 1074, replace=False))]
    effects = rng.normal(0, 2, 12), rng.normal(0, 0.3, 5), rng.normal(0, 1.3, 5), rng.normal(0, 0.6, 5)
    metric = 68 + sum(effect[column] for effect, column in zip(effects, grid.T, strict=True)) + rng.normal(0, 1.5, 1074)
    lines = [f"e{e:02d},c{c},s{s},r{r},{y!r}" for (e, c, s, r), y in zip(grid.tolist(), metric.tolist(), strict=True)]
    path.write_text("\n".join(["experiment,config,seed,repeat_id,metric", *lines]) + "\n")


def lectures(path: Path) -> None:
    """A table of InstEval's size and shape, for machines without R."""
    rng = np.random.default_rng(8)
    students, lecturers, departments = (
        rng.integers(0, 2972, 73421),
        rng.integers(0, 1128, 73421),
        rng.integers(0, 14, 1128),
    )
    service = rng.integers(0, 2, 73421)
    y = 3.2 + rng.normal(0, 0.3, 2972)[students] + rng.normal(0, 0.5, 1128)[lecturers] + rng.normal(0, 1.2, 73421)
    columns = zip(students, lecturers, service, departments[lecturers], y.tolist(), strict=True)
    path.write_text("\n".join(["s,d,service,dept,y", *(",".join(map(str, cells)) for cells in columns)]) + "\n")


def read_csv(path: Path) -> dict[str, np.ndarray]:
    header, *lines = path.read_text().splitlines()
    columns = dict(zip(header.split(","), np.array([line.split(",") for line in lines]).T, strict=True))
    response = "metric" if "metric" in columns else "y"
    return {**columns, response: columns[response].astype(float)}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        part = {"crossed": own_crossed, "lectures": own_lectures}[sys.argv[1]]
        print(json.dumps(part(Path(sys.argv[2]))))
    else:
        for line in measure():
            print(json.dumps(line))
