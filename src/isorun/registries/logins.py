"""Which registries there are, and the tokens for them: a file of the user, and nobody else's.

~/.config/isorun/registries.json     mode 0600; its tokens are sent to their registries, and never shown
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isorun.errors import InputError
from isorun.own_machine import replace_private, user_folder

__all__ = ["chosen_registry", "default_registry", "forget", "kept", "known", "normal", "remember"]


def chosen_registry(registry: str | None = None) -> str:
    """The registry that is meant: as it is said, as ISORUN_REGISTRY says, or the one that was logged in to last."""
    url = registry or os.environ.get("ISORUN_REGISTRY") or default_registry()
    if not url:
        raise InputError(
            "which registry is meant is not said", hint="isorun login URL, --registry URL or ISORUN_REGISTRY"
        )
    return normal(url)


def normal(url: str) -> str:
    """The address of a registry in one form."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    extra = parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in {"http", "https"} or not parts.hostname or extra:
        shown = f"{parts.scheme}://{parts.hostname}" if parts.hostname else "no address"
        raise InputError("this is no address of a registry", found=shown, allowed="https://isorun.lab.org")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in {None, usual} else "")


def remember(url: str, token: str, *, plain_http: bool = False) -> Path:
    """Keep a token for this registry, which is the one that is meant from now on; where it is kept."""
    entry = {"token": token, **({"plain_http": True} if plain_http else {})}
    return _keep({"default": normal(url), "registries": {**_all()["registries"], normal(url): entry}})


def forget(url: str) -> None:
    """Keep no token for this registry any more."""
    there = _all()
    others = {place: entry for place, entry in there["registries"].items() if place != normal(url)}
    if len(others) == len(there["registries"]):
        raise InputError(f"you are not logged in to {normal(url)}", allowed=", ".join(others) or "no registry")
    _keep({"default": "" if there["default"] == normal(url) else there["default"], "registries": others})


def known() -> tuple[str, ...]:
    """The registries that there is a token for."""
    return tuple(_all()["registries"])


def default_registry() -> str:
    """The registry that was logged in to last; empty where there is none."""
    return str(_all()["default"])


def _file() -> Path:
    return user_folder() / "registries.json"


def kept(url: str) -> dict[str, Any]:
    """What is kept for this registry: its token, and whether that may go there unencrypted."""
    return dict(_all()["registries"].get(url, {}))


def _all() -> dict[str, Any]:
    try:
        found = json.loads(_file().read_bytes())
        if isinstance(found["default"], str) and all(isinstance(item, dict) for item in found["registries"].values()):
            return {"default": found["default"], "registries": dict(found["registries"])}
    except FileNotFoundError:
        return {"default": "", "registries": {}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{_file()} cannot be read", found=type(error).__name__, hint="isorun login URL, after you moved it away"
        ) from None
    raise InputError(f"{_file()} is not as isorun login writes it", hint="isorun login URL, after you moved it away")


def _keep(whole: Mapping[str, Any]) -> Path:
    path = _file()
    try:
        replace_private(path, json.dumps(whole, indent=1).encode())
    except OSError as error:
        raise InputError(f"{path} cannot be written", found=error.strerror or str(error)) from None
    return path
