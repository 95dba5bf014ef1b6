"""Parts of an environment that few have, from what a user writes: switches, packages of its own, an image.

Each has a short form beside the other keys of an environment (`onednn = "off"`, `packages = ["NAME==VERSION"]`,
`image = "NAME:TAG"`), which is written out here, and checked.
"""

from __future__ import annotations

import errno
import hashlib
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from isorun.errors import StudyError, known_names
from isorun.study.parsing import CONTAINER, PACKAGES, as_mapping, as_one_of, as_table, as_text, as_texts, shown
from isorun.worker.frameworks.switches import STREAM_NAMES, SWITCHES

__all__ = [
    "ENGINES",
    "image_settings",
    "lines_elsewhere",
    "lock_content",
    "package_settings",
    "switch_value",
    "with_parts_apart",
]

_PACKAGE_KEYS: Final = {"packages": "requirements", "lock": "lock"}
"""The short form of an environment with packages of its own: what the settings of that kind are called beside it."""
_IMAGE_KEYS: Final = {name: name for name in ("image", "engine", "mounts", "options", "gpus")}
"""The same for an image."""
_SHORT_FORMS: Final = ((PACKAGES, "packages are", _PACKAGE_KEYS), (CONTAINER, "an image is", _IMAGE_KEYS))
ENGINES: Final = ("podman", "docker")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][\w.:/@+-]*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SAID_ELSEWHERE: Final = {
    **dict.fromkeys(("-e", "--env", "--env-file", "--env-host"), "variables stand in env"),
    **dict.fromkeys(("-v", "--volume", "--mount", "--volumes-from"), "folders stand in mounts"),
}
_WITH_VALUE: Final = """
    add-host arch blkio-weight cap-add cap-drop cgroup-manager cgroup-parent cgroupns cgroups config conmon
    connection context cpu-period cpu-quota cpu-shares cpus cpuset-cpus cpuset-mems device device-cgroup-rule
    dns dns-option dns-search events-backend gidmap gpus group-add hooks-dir host hostname identity imagestore
    ip ipc log-level mac-address memory memory-reservation memory-swap memory-swappiness module net network
    network-alias network-config-dir oom-score-adj pid pids-limit platform root runroot runtime runtime-flag
    secret security-opt shm-size storage-driver storage-opt sysctl tlscacert tlscert tlskey tmpdir tmpfs tz
    uidmap ulimit umask url user userns uts
"""
_WITHOUT: Final = "debug init no-hosts oom-kill-disable privileged read-only remote tls tlsverify transient-store"
_OPTIONS: Final = tuple(f"--{name}" for name in _WITH_VALUE.split())
"""Options of engines that a study may set, each with a value: what they do to a run is seen in it, and none is secret.
All others are refused: they would take the run out of isorun's hands (--detach), or hold what stands elsewhere."""
_FLAGS: Final = tuple(f"--{name}" for name in _WITHOUT.split())
"""The same, for those that take none."""
_TRANSPORTS: Final = re.compile(
    r"(?:dir|oci|oci-archive|docker-archive|docker-daemon|containers-storage|ostree|sif|tarball|atomic):|.*:/"
)
"""What makes an engine read a file or a folder of the machine in place of a name."""


def with_parts_apart(table: Mapping[str, Any], where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """The table with its short forms written out; a key that is neither one of these nor anything else is refused.

    keys: those of every environment.
    """
    known = (*keys, *(key for *_, short in _SHORT_FORMS for key in short))
    as_table(table, where, (*known, "switches", *SWITCHES))
    apart = as_table(table.get("switches", {}), f"{where}.switches", tuple(SWITCHES))
    asked = {**apart, **{name: table[name] for name in SWITCHES if name in table}}
    checked = {name: switch_value(name, asked[name], f"{where}.{name}") for name in sorted(asked)}
    rest = {key: item for key, item in table.items() if key in known}
    return _written_out({**rest, "switches": checked}, where)


def switch_value(name: str, value: Any, where: str) -> str:
    """A value that a switch takes."""
    row = SWITCHES[name]
    if name == "streams" and isinstance(value, (list, tuple)):
        value = "+".join(as_texts(value, where)) or "none"
    text = {True: "on", False: "off"}[value] if isinstance(value, bool) else as_text(value, where)
    if text in row.values or (row.other[0] and re.fullmatch(row.other[0], text)):
        return _in_order(text) if name == "streams" else text
    raise StudyError(f"{where}: {text!r} is not a value of this switch", allowed=row.allowed)


def _written_out(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The table with the short form of its kind written out."""
    for kind, noun, keys in _SHORT_FORMS:
        short = {setting: table[key] for key, setting in keys.items() if key in table}
        if not short:
            continue
        if table.get("kind", kind) != kind or set(short) & set(as_mapping(table.get("settings", {}), where)):
            found = f"kind = {table['kind']!r}" if "kind" in table else "settings with the same"
            raise StudyError(f"{where}: {noun} said twice, or for another kind", found=found, hint="keep one of them")
        rest = {key: item for key, item in table.items() if key not in keys}
        table = {**rest, "kind": kind, "settings": {**table.get("settings", {}), **short}}
    return table


def _in_order(text: str) -> str:
    """Random streams in one order, each once, so that one request is one environment."""
    words, at, seed = text.partition("@")
    named = words.split("+")
    ordered = [name for name in STREAM_NAMES if name in named]
    return f"{'+'.join(ordered) or words}{at}{seed}"


def package_settings(value: Any, where: str, folder: Path | None) -> dict[str, Any]:
    """The settings of an environment with packages: requirements, and a lock with the hash of its content.

    folder: where the lock is looked for; None for settings that were read before.
    """
    table = as_table(value, where, ("requirements", "lock", "sha256"))
    wanted = sorted(set(as_texts(table.get("requirements", []), f"{where}.requirements")))
    for text in wanted:
        if not text.strip() or text.startswith("-") or not text.isprintable():
            allowed = 'such as "NAME==VERSION"; options of an installer come from its own variables and files'
            raise StudyError(f"{where}.requirements: that is no requirement", found=shown(text), allowed=allowed)
        if _leads_elsewhere(text):
            raise StudyError(f"{where}.requirements: {_ELSEWHERE}", found=shown(text), allowed=_CONTENT, hint=_PINNED)
        if not _REQUIREMENT.fullmatch(text.strip()):
            raise StudyError(f"{where}.requirements: that is no requirement", found=shown(text), allowed=_CONTENT)
    lock = as_text(table.get("lock", ""), f"{where}.lock")
    if not wanted and not lock:
        raise StudyError(f"{where}: there are no packages", allowed='packages = ["NAME==VERSION"], or lock = "FILE"')
    digest = as_text(table.get("sha256", ""), f"{where}.sha256") or (_hash_of(lock, where, folder) if lock else "")
    return {**({"requirements": wanted} if wanted else {}), **({"lock": lock, "sha256": digest} if lock else {})}


def _hash_of(lock: str, where: str, folder: Path | None) -> str:
    path = (folder or Path()) / lock
    try:
        content = lock_content(path)
    except OSError as error:
        found = f"{path}: {error.strerror or error}"
        raise StudyError(
            f"{where}.lock: it cannot be read", found=found, allowed="a file such as requirements.txt"
        ) from None
    if lines := lines_elsewhere(content.decode(errors="replace"), path.name):
        what = f"{where}.lock: {_ELSEWHERE}, or is no line of a lock"
        raise StudyError(what, found=shown(lines[0]), allowed=_CONTENT, hint=_PINNED)
    return hashlib.sha256(content).hexdigest()


def lock_content(path: Path) -> bytes:
    """What a lock holds; OSError for what is no file, or none of a lock's size: a pipe or a device may never end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "that is no plain file")
    with path.open("rb") as file:
        content = file.read(_LARGEST_LOCK + 1)
    if len(content) > _LARGEST_LOCK:
        raise OSError(errno.EFBIG, f"more than {_LARGEST_LOCK >> 20} MiB are no lock")
    return content


def lines_elsewhere(text: str, name: str = "") -> list[str]:
    """The lines of a lock that may lead to what its own content does not tell: other files, folders, a branch.

    Lines are taken together and apart as pip does. What is none of the lines that are known to stand for themselves is
    among them. name: that of the file, by which installers know a pylock.toml.
    """
    if _PYLOCK.fullmatch(name):
        return _packages_elsewhere(text)
    return [line for line in _lines_as_read(text) if not _stands_for_itself(line)]


def _lines_as_read(text: str) -> Iterator[str]:
    begun: list[str] = []
    for line in text.removeprefix("\ufeff").splitlines():
        is_comment = _COMMENT.match(line) is not None
        if line.endswith("\\") and not is_comment:
            begun.append(line.strip("\\"))
            continue
        yield _COMMENT.sub("", "".join((*begun, " " if is_comment else "", line))).strip()
        begun = []
    yield _COMMENT.sub("", "".join(begun)).strip()


def _stands_for_itself(line: str) -> bool:
    words = line.split()
    first = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    wanted, options = " ".join(words[:first]), words[first:]
    if not wanted:
        return _are_known(options)
    known = all(word.startswith(_OF_REQUIREMENTS) for word in options if word.startswith("-"))
    return known and not _leads_elsewhere(wanted) and _REQUIREMENT.fullmatch(wanted) is not None


def _are_known(options: list[str]) -> bool:
    """Whether these are options of an installer that name no file and no folder."""
    left = list(options)
    while left:
        name, sign, value = left.pop(0).partition("=")
        if name in _ALONE and not sign:
            continue
        if name not in _WITH_TEXT and name not in _WITH_ADDRESS:
            return False
        value = value if sign else left.pop(0) if left else ""
        if name in _WITH_ADDRESS and not value.strip("'\"").startswith(("https://", "http://")):
            return False
    return True


def _packages_elsewhere(text: str) -> list[str]:
    """The same for a pylock.toml: the packages that are a folder or a file, or have no whole commit."""
    try:
        packages = tomllib.loads(text).get("packages", [])
        return [str(package.get("name")) for package in packages if _is_elsewhere(package)]
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        return [f"no pylock.toml: {error}"]


def _is_elsewhere(package: Mapping[str, Any]) -> bool:
    versioned = package.get("vcs")
    if "directory" in package or (versioned and not _COMMIT.fullmatch(str(versioned.get("commit-id")))):
        return True
    parts = [package.get("archive"), package.get("sdist"), versioned, *package.get("wheels", ())]
    return any(part and ("path" in part or str(part.get("url")).startswith("file:")) for part in parts)


def _leads_elsewhere(requirement: str) -> bool:
    """Whether it names a folder, a file, or what a branch has today: what is installed can change under it."""
    wanted = _SECRET.sub("//", re.split(r"\s;|;\s", requirement, maxsplit=1)[0].strip())
    if "${" in wanted:  # pip fills in variables
        return True
    if "://" in wanted:
        fixed = _VERSIONED.search(wanted) is None or _AT_COMMIT.search(wanted) is not None
        return "file:" in wanted.lower() or not fixed
    return bool(_PATH.search(wanted))


_LARGEST_LOCK: Final = 16 << 20
_PYLOCK: Final = re.compile(r"pylock(?:\.[^.]+)?\.toml")
_NAME: Final = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?"
_EXTRAS: Final = rf"\[\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*\]"
_VERSION: Final = r"(?:===|[=~!<>]=|[<>])\s*[\w.*+!-]+"
_VERSIONS: Final = rf"{_VERSION}(?:\s*,\s*{_VERSION})*(?:\s*,)?"
_ADDRESS: Final = r"(?:(?:git|hg|svn|bzr)\+)?[a-z]+://\S+"
_REQUIREMENT: Final = re.compile(
    rf"(?:{_NAME}\s*(?:{_EXTRAS})?\s*(?:{_VERSIONS}|\(\s*{_VERSIONS}\s*\)|@\s*{_ADDRESS})?|{_ADDRESS})\s*(?:;.*)?",
    re.ASCII,
)
_ALONE: Final = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")
_WITH_TEXT: Final = ("--no-binary", "--only-binary", "--trusted-host", "--use-feature")
_WITH_ADDRESS: Final = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links")
_OF_REQUIREMENTS: Final = ("--hash", "--config-setting", "--global-option", "-C")
_COMMENT: Final = re.compile(r"(?:^|\s+)#.*$")
_SECRET: Final = re.compile(r"//[^/@\s]*@")
_VERSIONED: Final = re.compile(r"\b(?:git|hg|svn|bzr)\+|\bgit://")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_AT_COMMIT: Final = re.compile(rf"@{_COMMIT.pattern}(?:[#?&\s]|$)")
_PATH: Final = re.compile(
    r"^[.~$]|@\s*[.~$/]|^[^\[\]=<>!\"']*[/\\]|^file:|\.(?:whl|zip|t[gbx]z|tlz|tar(?:\.\w+)?)(?:\[.*\])?$", re.IGNORECASE
)
_ELSEWHERE: Final = "that leads to a folder, a file or a branch, whose content can change while the text stays"
_CONTENT: Final = "NAME==VERSION, an archive by its URL, or a repository at a whole commit: NAME @ git+https://…@COMMIT"
_PINNED: Final = (
    "put what it holds here; for wheels of your own: PIP_FIND_LINKS in env; for code beside the study: PYTHONPATH in "
    "env, and code = REF for its versions"
)


def image_settings(value: Any, where: str, *, whole: bool = True) -> dict[str, Any]:
    """The settings of an environment that is an image, each only where it is set.

    whole: whether the image must be among them; else factors may say it.
    """
    table = as_table(value, where, tuple(_IMAGE_KEYS))
    image = as_text(table.get("image", ""), f"{where}.image")
    if image or whole:
        _check_image(image, f"{where}.image")
    engine = as_one_of(table["engine"], f"{where}.engine", ENGINES) if table.get("engine") else ""
    mounts = as_texts(table.get("mounts", []), f"{where}.mounts")
    for mount in mounts:
        source, target, mode = (*mount.split(":"), "", "")[:3] if mount.count(":") < 3 else ("", "", "")
        if not source or not mount.isprintable() or (target and target[0] != "/") or mode not in {"", "ro"}:
            allowed = '"FOLDER" (under its own name), "FOLDER:/INSIDE", or "FOLDER:/INSIDE:ro"'
            raise StudyError(f"{where}.mounts: that is no mount", found=shown(mount), allowed=allowed)
    options = as_texts(table.get("options", []), f"{where}.options")
    for option in options:
        _check_option(option, f"{where}.options")
    lists = {"mounts": list(mounts), "options": list(options)}
    found = {"image": image, "engine": engine, **lists, "gpus": _gpus(table, where)}
    return {name: item for name, item in found.items() if item not in ("", [], None)}


def _check_image(image: str, where: str) -> None:
    digest = image.rpartition("@")[2] if "@" in image else image if image.startswith("sha256:") else ""
    if digest and not _DIGEST.fullmatch(digest):
        raise StudyError(
            f"{where}: that is no digest", found=shown(digest), allowed="sha256: and 64 hexadecimal digits"
        )
    if _TRANSPORTS.match(image):
        what, hint = (
            f"{where}: that is no name but a way to a file",
            "podman load --input FILE, then name what it loaded",
        )
        raise StudyError(what, found=shown(image), allowed="the name or the id of an image", hint=hint)
    if not _IMAGE.fullmatch(image):
        allowed = '"NAME:TAG", "NAME@sha256:…", or the id of an image, "sha256:…"'
        raise StudyError(f"{where}: that is no image", found=shown(image), allowed=allowed)


def _check_option(option: str, where: str) -> None:
    name, _, value = option.partition("=")
    if not re.match(r"--?[a-zA-Z]", option) or not option.isprintable():
        allowed = "options of the engine that begin with --, each with its value: --shm-size=1g"
        raise StudyError(f"{where}: that is no option", found=shown(option), allowed=allowed)
    for said, instead in _SAID_ELSEWHERE.items():
        if name == said or (len(said) == 2 and option.startswith(said)):
            raise StudyError(f"{where}: {said} is set by isorun itself", hint=instead)
    if name not in (*_OPTIONS, *_FLAGS):  # what was given is not shown: it may be a secret
        told = name if option.startswith("--") else option[:2]
        written = "options are written out: --memory=8g for -m8g" if not option.startswith("--") else "leave it out"
        allowed = known_names(name, (*_OPTIONS, *_FLAGS))
        raise StudyError(f"{where}: {told} cannot be set", allowed=allowed, hint=written)
    if (name in _OPTIONS) != bool(value) and (name in _OPTIONS or value not in {"true", "false"}):
        raise StudyError(
            f"{where}: {name} {'needs a value' if name in _OPTIONS else 'takes none'}", allowed=f"{name}=…"
        )


def _gpus(table: Mapping[str, Any], where: str) -> Any:
    """`"all"`, the numbers of some, or `"none"`; None where nothing is said."""
    gpus = table.get("gpus")
    if gpus is None or gpus in ("all", "none"):
        return gpus
    if isinstance(gpus, bool):
        return "all" if gpus else "none"
    if isinstance(gpus, list) and gpus and all(isinstance(item, int) and item >= 0 for item in gpus):
        return gpus
    raise StudyError(f"{where}.gpus: that names no devices", found=shown(gpus), allowed='"all", "none", or [0, 1]')
