"""What the program takes from outside: data that nobody checks, and packages of whatever version is there."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isorun.diagnose.audit.findings import AuditFinding, Sure
from isorun.diagnose.audit.flow import Flow, FlowStep
from isorun.diagnose.audit.program import AuditedProgram, keyword

__all__ = ["input_findings", "is_checked"]

_DOWNLOADS: Final = frozenset(
    (
        "torch.hub.download_url_to_file",
        "torch.hub.load_state_dict_from_url",
        "urllib.request.urlretrieve",
        "urllib.request.urlopen",
        "requests.get",
        "wget.download",
        "gdown.download",
    )
)
_READERS: Final = re.compile(
    r"numpy\.(load|loadtxt|genfromtxt|memmap|fromfile)$|pandas\.read_(?!sql|clipboard|html)\w+$|h5py\.File$|polars\.(read|scan)_\w+$"
    r"|PIL\.Image\.open$|torch\.load$|cv2\.imread$|scipy\.io\.loadmat$|imageio\.\w*imread$|torchaudio\.load$"
)
_DATA: Final = re.compile(r"\.(txt|csv|tsv|jsonl?|bin|npy|npz|pkl|pickle|pt|h5|hdf5|gz|parquet|arrow|dat|idx|mat)$")
_CODE: Final = re.compile(
    r"config|\.ya?ml|\.toml|\.ini|\.cfg|__file__|sys\.argv|log|args\.json|requirements|README|/proc/"
)
_CHECKS: Final = ("hashlib", "zlib.crc32", "file_hash", "md5_hash", "xxhash", "blake3")
_LOCKS: Final = (
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "pdm.lock",
    "conda-lock.yml",
    "pixi.lock",
    "requirements.lock",
)
_LISTS: Final = ("requirements.txt", "requirements/base.txt", "requirements.in")
_RESUMED: Final = re.compile(r"ckpt|checkpoint|resume|weights|state|model|snapshot|pretrained|best")


def input_findings(flow: Flow) -> Iterator[AuditFinding]:
    """All that is open about data and packages."""
    if not is_checked(flow.program):
        for step in flow.steps:
            if isinstance(step.node, ast.Call) and not step.elsewhere:
                yield from _read(flow, step, step.node)
    yield from _unpinned(flow)


def is_checked(program: AuditedProgram) -> bool:
    """Whether the program compares checksums at all: then it is taken to do so where it matters."""
    return any(check in source.text for source in program.sources for check in _CHECKS)


def _read(flow: Flow, step: FlowStep, call: ast.Call) -> Iterator[AuditFinding]:
    name = step.name
    if name in _DOWNLOADS:
        yield _unchecked(step, "what is downloaded may change, and nothing compares it with a checksum", Sure.MEDIUM)
    elif name == "keras.utils.get_file":
        yield _unchecked(step, "the file is downloaded without file_hash, so another one is not noticed", Sure.MEDIUM)
    elif name == "datasets.load_dataset" or (
        name.endswith(".from_pretrained") and name.startswith(("transformers.", "diffusers."))
    ):
        first = flow.value(call.args[0], step.frame) if call.args else (False, None)
        if keyword(call, "revision") is None and first != (True, None) and not _is_local(first):
            yield _unchecked(step, "the newest version on the hub is taken: no revision is named", Sure.MEDIUM)
    elif _READERS.match(name) and call.args:
        if name == "torch.load" and _RESUMED.search(_statement(step, call).lower().replace("weights_only", "")):
            return
        known, given = flow.value(call.args[0], step.frame)
        remote = re.search(r"https?://", str(given) if known else ast.unparse(call.args[0]))
        yield _unchecked(
            step,
            "what is downloaded may change, and nothing compares it with a checksum" if remote else _LOCAL,
            Sure.MEDIUM if remote else Sure.LOW,
        )
    elif name == "open" and call.args and _opens_data(flow, step, call):
        yield _unchecked(step, _LOCAL, Sure.LOW)


def _statement(step: FlowStep, call: ast.Call) -> str:
    """The lines that a call stands in."""
    lines = step.source.text.splitlines()
    return "\n".join(lines[call.lineno - 1 : call.end_lineno])


_LOCAL: Final = "the data is read as it is: another version of the file is not noticed"


def _unchecked(step: FlowStep, why: str, sure: Sure) -> AuditFinding:
    sure = sure if step.certain else Sure.LOW
    fix = "compare its SHA-256 with a constant before it is read, or keep the revision"
    return AuditFinding("data-checksum", step.source.shown, step.line, why, fix, sure)


def _is_local(first: tuple[bool, object]) -> bool:
    return first[0] and isinstance(first[1], str) and first[1].startswith((".", "/", "~"))


def _opens_data(flow: Flow, step: FlowStep, call: ast.Call) -> bool:
    """Whether a file is opened for reading that looks like data."""
    mode = flow.value(call.args[1] if len(call.args) > 1 else keyword(call, "mode") or ast.Constant("r"), step.frame)
    if not mode[0] or not set(str(mode[1])) <= set("rbtU"):
        return False
    text = _path_text(flow, step, call.args[0])
    if _CODE.search(text):
        return False
    return any(_DATA.search(part) for part in re.findall(r"""['"]([^'"]*)['"]""", text))


def _path_text(flow: Flow, step: FlowStep, node: ast.expr, depth: int = 0) -> str:
    """The source of an expression, with what its names were bound to behind it."""
    parts = [ast.unparse(node)]
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Name, ast.Attribute)) and depth < 4:
            found = step.frame.find(ast.unparse(inner))
            if found is not None and found[0] is not node:
                there = FlowStep(step.node, step.name, found[1], step.certain, step.later, step.elsewhere)
                parts.append(_path_text(flow, there, found[0], depth + 1))
            elif isinstance(inner, ast.Attribute):
                known, value = flow.program.options.value(inner.attr)
                parts.append(repr(value) if known else "")
    return " ".join(parts)


def _unpinned(flow: Flow) -> Iterator[AuditFinding]:
    """Requirements without a version, or none at all, in the script's folder or where the command is started."""
    folders = list(dict.fromkeys((flow.program.script.path.resolve().parent, flow.program.folder.resolve())))
    above = [parent for folder in folders for parent in (folder, folder.parent)]
    if any((folder / lock).is_file() for folder in above for lock in _LOCKS):
        return
    for folder in folders:
        for name in _LISTS:
            if (folder / name).is_file():
                yield from _loose(flow, folder / name)
                return
    libraries = _libraries(flow)
    if libraries:
        line, first = libraries[0]
        names = ", ".join(dict.fromkeys(name for _, name in libraries))
        why = f"no list of requirements or lock says which version of {names} was meant"
        fix = "pip freeze > requirements.txt"
        yield AuditFinding("unpinned-packages", flow.program.script.shown, line, why, fix, Sure.LOW, about=first)


def _loose(flow: Flow, path: Path) -> Iterator[AuditFinding]:
    found = []
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        asked = text.partition("#")[0].partition(";")[0].strip()
        if asked and not asked.startswith("-") and not re.search(r"===?\s*[\w.+!-]+$|@\s*\S+", asked):
            found.append((number, re.split(r"[\s<>=!~\[]", asked, maxsplit=1)[0]))
    if found:
        resolved, folder = path.resolve(), flow.program.folder.resolve()
        shown = str(resolved.relative_to(folder)) if resolved.is_relative_to(folder) else str(path)
        names = ", ".join(name for _, name in found)
        why = f"another version may be installed next time: {names}"
        yield AuditFinding("unpinned-packages", shown, found[0][0], why, "name==version", Sure.MEDIUM, about=names)


def _libraries(flow: Flow) -> list[tuple[int, str]]:
    """The libraries that the script imports, by line: not Python's own, and not the program's."""
    script = flow.program.script
    own = {name.partition(".")[0] for name in flow.program.modules} | {"isorun", "__main__", "__future__"}
    found = []
    for node, names in script.imports.items():
        top = names[0].partition(".")[0] if names else ""
        relative = isinstance(node, ast.ImportFrom) and node.level
        if top and not relative and top not in own and top not in sys.stdlib_module_names:
            found.append((node.lineno, top))  # type: ignore[attr-defined]
    return sorted(found)
