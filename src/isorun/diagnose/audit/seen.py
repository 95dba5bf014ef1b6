"""What a few real steps showed, held against what the source says: findings are confirmed, withdrawn, or added.

The run knows which generators were drawn from and seeded, and in which order, which operations were called on which
device, how many threads and workers there were, and which files were read. It knows nothing of what comes after it
was stopped: what it did not reach is left as the source has it, but is not sure any more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from isorun.diagnose.audit import Withdrawn, in_order
from isorun.diagnose.audit.findings import AuditFinding, SourceEdit, Sure
from isorun.diagnose.audit.generators import SEED_LINES
from isorun.diagnose.audit.inputs import is_checked
from isorun.diagnose.audit.kernels import thread_variables
from isorun.diagnose.audit.program import AuditedProgram
from isorun.worker.usercode import hash_of_file

__all__ = ["Seen", "hold_all", "hold_together", "those_that_trained"]

_SEEDING: Final = {
    "random.seed": "random",
    "numpy.random.seed": "numpy",
    "torch.manual_seed": "torch",
    "tensorflow.random.set_seed": "tensorflow",
}
_NUMBER_HELD: Final = re.compile(r"(?<=[=(])\d+")
_ON_A_GPU: Final = ("cudnn-autotune", "nondeterministic-kernels", "atomics", "tf32")
_BACKWARD: Final = {
    **dict.fromkeys(("interpolate", "upsample", "Upsample", "UpsamplingBilinear2d"), "upsample_"),
    **dict.fromkeys(("ctc_loss", "CTCLoss"), "_ctc_loss"),
    "grid_sample": "grid_sampler_",
}
"""What is called, to the beginning of the name of the operation that adds in its backward pass."""
_ONLY_WHERE_REACHED: Final = frozenset(
    {"atomics", "uninitialised-memory", "hash-order", "file-order", "loader-workers", "data-checksum"}
)
"""Kinds that are about what a line does when it is executed."""
_LARGEST_HASHED: Final = 2**28
_NO_GPU: Final = "the run computed on no GPU"
_NOT_REACHED: Final = "the run came to its end without it"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the worker noted. events: in their order. ended: the training came to its end by itself.

    began: its start, in seconds since 1970. moved: generators of the process that stood elsewhere at the end.
    steps: of an optimizer. reached: first lines of the functions that were entered, by file; None where not known.
    """

    program: AuditedProgram
    effective: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    ended: bool
    began: float
    moved: tuple[str, ...] = ()
    steps: int = 0
    reached: Mapping[str, Sequence[int]] | None = None

    @classmethod
    def of(cls, program: AuditedProgram, effective: Mapping[str, Any], began: float) -> Seen:
        """From a record's effective environment."""
        audit = effective.get("audit") or {}
        events = [event for event in audit.get("events", ()) if isinstance(event, Mapping)]
        return cls(
            program,
            effective,
            events,
            bool(audit) and not audit.get("stopped"),
            began,
            tuple(audit.get("moved", ())),
            int(audit.get("steps") or 0),
            audit.get("reached"),
        )

    @property
    def gpus(self) -> bool:
        """Whether a GPU was started."""
        return bool((self.effective.get("gpu") or {}).get("devices"))

    def place(self, event: Mapping[str, Any]) -> tuple[str, int]:
        """The file, as the source's findings name it, and the line."""
        file, _, line = str(event.get("where", "")).rpartition(":")
        known = {str(source.path.resolve()): source.shown for source in self.program.sources}
        path = str(Path(file).resolve()) if file else ""
        return known.get(path, file), int(line) if line.isdigit() else 0

    def own(self, event: Mapping[str, Any]) -> bool:
        """Whether it came from a line of the program's own."""
        return self.place(event)[0] in {source.shown for source in self.program.sources}

    def of_kind(self, what: str) -> list[Mapping[str, Any]]:
        """The events of one kind, in their order."""
        return [event for event in self.events if event.get("what") == what]

    def at(self, finding: AuditFinding, what: str) -> Mapping[str, Any] | None:
        """The event of a kind at the place of a finding."""
        return next((event for event in self.of_kind(what) if self.place(event) == (finding.file, finding.line)), None)


def those_that_trained(processes: Iterable[Mapping[str, Any]], program: AuditedProgram) -> list[Mapping[str, Any]]:
    """Of what the processes of a run told, what the ranks of the training did, by rank: not a launcher, nor helpers."""
    script = program.script.path.resolve()
    looks = [(each.get("audit") or {}, each) for each in processes]
    ranks = [(look, each) for look, each in looks if look.get("rank") is not None or look.get("steps")]
    found = ranks or [
        (look, each) for look, each in looks if look.get("script") and Path(str(look["script"])).resolve() == script
    ]
    return [each for _, each in sorted(found, key=lambda item: -1 if item[0].get("rank") is None else item[0]["rank"])]


def hold_all(
    found: Sequence[AuditFinding], ranks: Sequence[Seen]
) -> tuple[tuple[AuditFinding, ...], tuple[Withdrawn, ...]]:
    """What holds in any of the ranks, each finding once, as the rank has it that is surest of it.

    Each rank is held against the source by itself, for the order of seeds and draws is one of a process.
    """
    held = [hold_together(found, seen) for seen in ranks]
    kept: dict[tuple[str, str, int, str], list[tuple[int, AuditFinding]]] = {}
    for place, (own, _) in enumerate(held):
        told = (ranks[place].effective.get("audit") or {}).get("rank")
        rank = place if told is None else int(told)
        for item in own:
            kept.setdefault((item.kind, item.file, item.line, item.about), []).append((rank, item))
    withdrawn = {(item.finding.kind, item.finding.place): item for _, own in held for item in own}
    left = {(kind, f"{file}:{line}" if line else file) for kind, file, line, _ in kept}
    merged = in_order(_of_ranks(items, len(ranks)) for items in kept.values())
    return merged, tuple(item for key, item in withdrawn.items() if key not in left)


def _of_ranks(items: Sequence[tuple[int, AuditFinding]], ranks: int) -> AuditFinding:
    """One finding, with the ranks that are surest of it where others are not."""
    order = list(Sure)
    surest = min((item.sure for _, item in items), key=order.index)
    where = [(rank, item) for rank, item in items if item.sure is surest]
    finding = where[0][1]
    if len(where) == ranks:
        return finding
    numbers = tuple(rank for rank, _ in where)
    told = f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {', '.join(map(str, numbers))}"
    return replace(finding, why=f"{finding.why} (in {told} of {ranks})", ranks=numbers)


def hold_together(found: Sequence[AuditFinding], seen: Seen) -> tuple[tuple[AuditFinding, ...], tuple[Withdrawn, ...]]:
    """The findings of both, and those of the source that the run did not bear out."""
    kept: list[AuditFinding] = []
    withdrawn: list[Withdrawn] = []
    for finding in found:
        judged = _judged(finding, seen)
        if isinstance(judged, str):
            withdrawn.append(Withdrawn(finding, judged))
        else:
            kept.append(judged)
    kept += list(_only_seen(kept, seen))
    return in_order(kept), tuple(withdrawn)


def _judged(finding: AuditFinding, seen: Seen) -> AuditFinding | str:
    """The finding as the run leaves it; why it is withdrawn, as a text."""
    if finding.kind in _ONLY_WHERE_REACHED and (finding.kind != "atomics" or seen.gpus):
        unreached = _unreached(finding, seen)
        if unreached is not None:
            return unreached
    if finding.kind in _ON_A_GPU:
        return _judged_on_gpu(finding, seen)
    if finding.kind in {"unseeded-generator", "late-seed"} and finding.about in SEED_LINES:
        return _judged_generator(finding, seen)
    if finding.kind in {"unseeded-generator", "fresh-seed"} and finding.about != "environment":
        event = seen.at(finding, "fresh") or seen.at(finding, "seed")
        return replace(finding, sure=Sure.HIGH) if event else _not_reached(finding, seen)
    if finding.kind == "hash-order":
        variables = seen.effective.get("variables") or {}
        fixed = variables.get("PYTHONHASHSEED", "random") != "random"
        return f"PYTHONHASHSEED is {variables['PYTHONHASHSEED']}" if fixed else finding
    if finding.kind == "thread-count":
        return _judged_threads(finding, seen)
    if finding.kind == "loader-workers":
        event = seen.at(finding, "loader")
        if event is not None and not event.get("workers"):
            return "the run loaded its data without workers"
        return replace(finding, why=f"{finding.why} (here {event['workers']})") if event else finding
    return _with_checksum(finding, seen) if finding.kind == "data-checksum" else finding


def _unreached(finding: AuditFinding, seen: Seen) -> AuditFinding | str | None:
    """What is left of a finding in a function that was never entered; None where it was, or nobody knows.

    A few steps do not reach an evaluation, or what comes at the end: where the run was stopped before its end, it stays
    as what may be.
    """
    source = next((each for each in seen.program.sources if each.shown == finding.file), None)
    if source is None or seen.reached is None or not finding.line:
        return None
    entered = set(seen.reached.get(str(source.path.resolve()), ()))
    function = _around(source.tree, finding.line)
    if not entered or function is None or _first_lines(function) & entered:
        return None
    if seen.ended:
        return _NOT_REACHED
    return replace(finding, sure=Sure.LOW, why=f"{finding.why} (not reached in this run)")


def _first_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """Where Python says that a function begins: at its first decorator, or at itself."""
    return {function.lineno, *(decorator.lineno for decorator in function.decorator_list)}


def _around(tree: ast.AST, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function around a line."""
    function = None
    for node in ast.walk(tree):  # what is further in comes later
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node if node.lineno <= line <= (node.end_lineno or node.lineno) else function
    return function


def _judged_on_gpu(finding: AuditFinding, seen: Seen) -> AuditFinding | str:
    driver = (seen.effective.get("gpu") or {}).get("driver")
    unknown = finding.about in {"tensorflow", "jax"} and bool(driver)
    if not seen.gpus:
        return finding if unknown else _NO_GPU
    torch = seen.effective.get("torch") or {}
    if finding.kind == "cudnn-autotune":
        return replace(finding, sure=Sure.HIGH) if torch.get("cudnn_benchmark") else "it was off when the run ended"
    if finding.kind == "nondeterministic-kernels" and finding.about == "torch":
        return (
            "deterministic algorithms were on"
            if torch.get("deterministic_algorithms")
            else replace(finding, sure=Sure.HIGH)
        )
    if finding.kind == "atomics":
        return replace(finding, sure=Sure.HIGH) if _was_called(finding, seen) else _not_reached(finding, seen)
    return finding


def _was_called(finding: AuditFinding, seen: Seen) -> bool:
    """Whether the operation was seen: at its line, or in a backward pass, whose threads know no line."""
    if seen.at(finding, "operation") is not None:
        return True
    backward = _BACKWARD.get(finding.about)
    names = [str(event["name"]) for event in seen.of_kind("operation") if event.get("device") != "cpu"]
    return backward is not None and any(name.startswith(backward) for name in names)


def _order(seen: Seen, family: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, bool]:
    """The first draw from a generator, its first seed, and whether the draw came first."""
    for event in seen.events:
        if event.get("what") == "draw" and event.get("family") == family:
            later = [other for other in seen.of_kind("seed") if _SEEDING.get(str(other.get("name"))) == family]
            before = [other for other in later if seen.events.index(other) < seen.events.index(event)]
            return event, next(iter(before or later), None), not before
    return (
        None,
        next((each for each in seen.of_kind("seed") if _SEEDING.get(str(each.get("name"))) == family), None),
        False,
    )


def _judged_generator(finding: AuditFinding, seen: Seen) -> AuditFinding | str:
    family = "random" if finding.about == "keras" else finding.about
    if family == "tensorflow":
        seeded = any(_SEEDING.get(str(event.get("name"))) == family for event in seen.of_kind("seed"))
        return "the run seeded it" if seeded else finding
    drawn, seed, draw_first = _order(seen, family)
    if (
        finding.about == "keras"
        and int(str((seen.effective.get("packages") or {}).get("keras", "3")).partition(".")[0]) < 3
    ):
        return "Keras 2 draws from TensorFlow's generator"
    if drawn is None:
        return _judged_by_state(finding, seen, family)
    if finding.kind == "unseeded-generator" and seed is not None and not draw_first:
        return f"{seed['name']}({seed.get('value', '')}) came first, at {_where(seen, seed)}"
    if finding.kind == "late-seed" and not draw_first:
        return "nothing had been drawn when it was seeded"
    return replace(finding, sure=Sure.HIGH)


def _judged_by_state(finding: AuditFinding, seen: Seen, family: str) -> AuditFinding | str:
    """No call of the program was seen to draw; libraries may have, by ways of their own."""
    seeds = [event for event in seen.of_kind("seed") if _SEEDING.get(str(event.get("name"))) == family]
    if family not in seen.moved:
        return _not_reached(finding, seen)
    if finding.kind == "unseeded-generator":
        return (
            f"{seeds[0]['name']} seeded it, at {_where(seen, seeds[0])}" if seeds else replace(finding, sure=Sure.HIGH)
        )
    return finding


def _where(seen: Seen, event: Mapping[str, Any]) -> str:
    file, line = seen.place(event)
    return f"{file}:{line}"


def _not_reached(finding: AuditFinding, seen: Seen) -> AuditFinding | str:
    if seen.ended:
        return _NOT_REACHED
    return replace(finding, sure=Sure.MEDIUM) if finding.sure is Sure.HIGH else finding


def _judged_threads(finding: AuditFinding, seen: Seen) -> AuditFinding | str:
    variables = seen.effective.get("variables") or {}
    fixed = next((f"{name}={variables[name]}" for name in thread_variables(finding.about) if variables.get(name)), "")
    if fixed:
        return f"{fixed} in the environment"
    own = seen.effective.get(finding.about) or {}
    threads = own.get("threads") or own.get("intra_op_parallelism")
    if not threads:
        return finding
    # The number to hold is the one that the run had.
    fix = _NUMBER_HELD.sub(str(threads), finding.fix)
    return replace(finding, why=f"{finding.why} (here {threads})", fix=fix, sure=Sure.MEDIUM)


def _with_checksum(finding: AuditFinding, seen: Seen) -> AuditFinding:
    """With the file that was read there, and what it has to be compared with."""
    event = seen.at(finding, "file")
    path = Path(str(event["name"])) if event is not None else None
    if path is None or not path.is_file() or path.stat().st_size > _LARGEST_HASHED:
        return finding
    return replace(finding, fix=f"compare the SHA-256 of {path.name} with {hash_of_file(path)} before it is read")


def _only_seen(kept: Iterable[AuditFinding], seen: Seen) -> Iterator[AuditFinding]:
    """What the source did not show."""
    told = {(finding.kind, finding.file, finding.line) for finding in kept}
    families = {(finding.kind, finding.about) for finding in kept}
    kinds = {finding.kind for finding in kept}
    for event in seen.of_kind("fresh"):
        file, line = seen.place(event)
        if seen.own(event) and ("unseeded-generator", file, line) not in told:
            why = f"{event['name']} was given no seed, and took fresh entropy"
            fix = "give it a constant, or an option of the program"
            yield AuditFinding("unseeded-generator", file, line, why, fix, Sure.HIGH)
    yield from _generators_only_seen(families, seen)
    yield from _files_only_seen(told, seen)
    if not seen.gpus or (seen.effective.get("torch") or {}).get("deterministic_algorithms"):
        return
    if "nondeterministic-kernels" not in kinds:
        why = "the run computed on a GPU, and nothing asked for deterministic kernels"
        fix = "torch.use_deterministic_algorithms(True), with CUBLAS_WORKSPACE_CONFIG=:4096:8 in the environment"
        edits = (SourceEdit("", 0, 0, "kernels"),)
        yield AuditFinding(
            "nondeterministic-kernels", seen.program.script.shown, 1, why, fix, Sure.HIGH, "torch", edits
        )
    for event in seen.of_kind("operation"):
        file, line = seen.place(event)
        if event.get("device") == "cuda" and seen.own(event) and ("atomics", file, line) not in told:
            why = f"{event['name']} adds with atomic operations on a GPU, in whatever order threads come"
            fix = "torch.use_deterministic_algorithms(True), which takes another kernel or says that there is none"
            yield AuditFinding(
                "atomics", file, line, why, fix, Sure.HIGH, str(event["name"]), (SourceEdit("", 0, 0, "kernels"),)
            )


def _files_only_seen(told: set[tuple[str, str, int]], seen: Seen) -> Iterator[AuditFinding]:
    """Files that a line read whose source does not show it: not those that the run itself wrote."""
    if is_checked(seen.program):
        return
    known = {(file, line) for kind, file, line in told if kind == "data-checksum"}
    for event in seen.of_kind("file"):
        path, place = Path(str(event["name"])), seen.place(event)
        if place in known or not seen.own(event) or not path.is_file() or path.stat().st_mtime >= seen.began:
            continue
        known.add(place)
        why = f"{path.name} is read as it is: another version of the file is not noticed"
        finding = AuditFinding("data-checksum", *place, why, "compare its SHA-256 with a constant", Sure.LOW)
        yield _with_checksum(finding, seen)


def _generators_only_seen(families: set[tuple[str, str]], seen: Seen) -> Iterator[AuditFinding]:
    for family in ("random", "numpy", "torch"):
        drawn, seed, draw_first = _order(seen, family)
        kind = "unseeded-generator" if seed is None else "late-seed"
        known = {about for _, about in families}
        if drawn is None or not draw_first or family in known or (family == "random" and "keras" in known):
            continue
        if not seen.own(drawn):
            continue
        file, line = seen.place(drawn if seed is None else seed)
        why = f"{drawn['name']} at {_where(seen, drawn)} was drawn "
        why += "from a generator that nothing seeds" if seed is None else "before it is seeded here"
        fix = f"{SEED_LINES[family][1]} before the first draw"
        yield AuditFinding(kind, file, line, why, fix, Sure.HIGH, family, (SourceEdit("", 0, 0, family),))
