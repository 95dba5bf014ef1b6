"""Repositories with a history, made in one go: for tests of versions of the code."""

import os
import subprocess
from pathlib import Path


def git(folder, *words, text=None, check=True):
    """Ask git there, as a user without settings of their own."""
    identity = ("-c", "user.name=T", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, env=own, input=text, capture_output=True, text=True, check=check
    )
    return done.stdout.strip()


def history(folder, versions, files=None):
    """A repository whose main branch has a commit for each version: what `conf.py` holds. Tagged c1, c2, …

    files: others, which the first commit brings.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init")
    stream = []
    for number, content in enumerate(versions, start=1):
        stream += ["commit refs/heads/main", f"mark :{number}", f"committer T <t@t> {1_700_000_000 + number} +0000"]
        stream += [_data(f"step {number}"), *([f"from :{number - 1}"] if number > 1 else [])]
        held = {**({".gitignore": ".isorun/\n", **(files or {})} if number == 1 else {}), "conf.py": content}
        for name, text in held.items():
            stream += [f"M 100644 inline {name}", _data(text)]
        stream += [f"reset refs/tags/c{number}", f"from :{number}", ""]
    git(folder, "fast-import", "--quiet", text="\n".join(stream) + "\n")
    git(folder, "reset", "--hard", "main")
    return folder


def _data(text):
    return f"data {len(text.encode())}\n{text}"
