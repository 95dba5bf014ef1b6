"""A patch that closes findings, as `patch -p1` and `git apply` take it. Nothing is written here.

Small edits stand where the finding is: a seed for a generator, `sorted(…)` around a listing. What the whole process
needs (seeds, deterministic kernels, threads) becomes a few lines at the head of the script, before anything of the
program's own is imported or drawn.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from isorun.diagnose.audit.findings import AuditFinding, SourceEdit
from isorun.diagnose.audit.generators import SEED_LINES
from isorun.diagnose.audit.kernels import HEAD_LINES, THREADS_OF, thread_lines
from isorun.diagnose.audit.program import AuditedProgram, Source

__all__ = ["patch_for"]

_REMARK: Final = "# Held, so that two runs of this program agree:"


def patch_for(program: AuditedProgram, findings: Sequence[AuditFinding], pins: Iterable[tuple[str, str]] = ()) -> str:
    """The patch; empty where no finding has an edit. pins: packages with versions, for a list of requirements."""
    edits = list(dict.fromkeys(edit for finding in findings for edit in finding.edits))
    asked = [edit.text for edit in edits if not edit.file]
    sources = {source.shown: source for source in program.sources}
    parts = []
    for shown, source in sources.items():
        own = [edit for edit in edits if edit.file == shown]
        if source is program.script and asked:
            own += _first_lines(source, asked)
            own.append(_head(program, source, asked))
        if own and _can_be_named(shown) and "\ufffd" not in source.text:  # in UTF-8
            parts.append(_difference(shown, source.text, _edited(source.text, own)))
    # Without the local part (2.1.0+cpu): no index that people share has it, and a plain pin is met by it.
    plain = {name: version.partition("+")[0] for name, version in pins}
    parts += list(_requirements(program, findings, plain))
    return "".join(parts)


def _can_be_named(shown: str) -> bool:
    """Whether a patch can name a file: below this folder, and by no characters that make lines of their own."""
    return not Path(shown).is_absolute() and shown.isprintable()


def _edited(text: str, edits: Iterable[SourceEdit]) -> str:
    """The text with the edits made from its end to its beginning; one that lies within another is left out."""
    data = text.encode()
    end = len(data) + 1
    for edit in sorted(edits, key=lambda item: (item.begin, item.end), reverse=True):
        if edit.end <= end:
            data = data[: edit.begin] + edit.text.encode() + data[edit.end :]
            end = edit.begin
    return data.decode()


def _difference(shown: str, before: str, after: str, *, is_new: bool = False) -> str:
    first = "/dev/null" if is_new else f"a/{shown}"
    lines = difflib.unified_diff(_lines(before), _lines(after), first, f"b/{shown}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """The lines as `patch` counts them: only a line feed ends one."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _head(program: AuditedProgram, source: Source, asked: Sequence[str]) -> SourceEdit:
    """The lines for the head of a script, where they belong: behind its imports, before those of its own modules."""
    imports, lines = _needed(asked)
    present = {
        alias.name
        for node in source.tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
        if not alias.asname
    }
    place, early = _place(program, source)
    wanted = [line for line in imports if early or line.removeprefix("import ") not in present]
    text = "\n".join([_REMARK, *wanted, *lines])
    return SourceEdit(source.shown, place, place, f"{text}\n\n" if lines else "")


def _first_lines(source: Source, asked: Sequence[str]) -> Iterator[SourceEdit]:
    """Variables that libraries read when they are imported, before all imports."""
    lines = [line for word in asked if word.startswith(THREADS_OF) for line in _lines_of_threads(word)[0]]
    if not lines:
        return
    first = next((node for node in source.tree.body if not _stands_first(node)), None)
    data = source.text.encode().splitlines(keepends=True)
    place = sum(map(len, data[: first.lineno - 1])) if first is not None else 0
    yield SourceEdit(source.shown, place, place, "\n".join([_REMARK, *lines]) + "\n\n")


def _stands_first(node: ast.stmt) -> bool:
    """What Python wants before all else: the text of a module, and what it takes from the future."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _lines_of_threads(word: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return thread_lines(word.removeprefix(THREADS_OF))


def _needed(asked: Sequence[str]) -> tuple[list[str], list[str]]:
    imports: list[str] = []
    lines: list[str] = []
    of_threads = [line for word in asked if word.startswith(THREADS_OF) for line in _lines_of_threads(word)[1]]
    for line in of_threads:
        (imports if line.startswith("import ") else lines).append(line)
    if "tensorflow-kernels" in asked:  # its lines seed Keras, and TensorFlow with it
        asked = [word for word in asked if word not in {"keras", "tensorflow"}]
    for word in asked:
        for line in (*SEED_LINES.get(word, ()), *HEAD_LINES.get(word, ())):
            (imports if line.startswith("import ") else lines).append(line)
    return list(dict.fromkeys(imports)), list(dict.fromkeys(lines))


def _place(program: AuditedProgram, source: Source) -> tuple[int, bool]:
    """Where the lines go, and whether that is before the last import: modules of one's own may draw when imported."""
    body = source.tree.body
    after = 0
    for place, node in enumerate(body):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any(name.partition(".")[0] in program.modules for name in source.imports[node]):
                break
        elif not (is_text and place == 0):
            break
        after = place + 1
    early = any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body[after:])
    line = (body[after - 1].end_lineno or 0) if after else 0
    data = source.text.encode().splitlines(keepends=True)
    while line < len(data) and not data[line].strip():
        line += 1
    return sum(map(len, data[:line])), early


def _requirements(program: AuditedProgram, findings: Sequence[AuditFinding], pins: dict[str, str]) -> Iterator[str]:
    """Versions that the run had, for requirements that name none."""
    loose = [finding for finding in findings if finding.kind == "unpinned-packages"]
    if not loose or not pins or not _can_be_named(loose[0].file):
        return
    finding = loose[0]
    if finding.file == program.script.shown:
        wanted = {name: pins[name] for name in sorted(pins) if name != "isorun"}
        yield _difference(
            "requirements.txt", "", "".join(f"{name}=={version}\n" for name, version in wanted.items()), is_new=True
        )
        return
    path = program.folder / finding.file
    before = path.read_text(encoding="utf-8", errors="replace")
    names = {name.strip().lower().replace("_", "-"): name.strip() for name in finding.about.split(",")}
    after = "".join(_pinned(line, names, pins) for line in _lines(before))
    if after != before:
        yield _difference(finding.file, before, after)


def _pinned(line: str, names: dict[str, str], pins: dict[str, str]) -> str:
    for name, written in names.items():
        if line.lower().startswith(written.lower()) and name in pins:
            rest = line.partition("#")
            remark = f"  #{rest[2]}" if rest[1] else "\n"
            if (
                not line[len(written) : len(written) + 1].isalnum()
                and line[len(written) : len(written) + 1] not in "-_.["
            ):
                return f"{written}=={pins[name]}{remark}"
    return line
