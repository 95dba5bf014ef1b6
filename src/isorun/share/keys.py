"""Keys to sign packages with, and keys of others that are trusted: files of the user, and nobody else's.

    ~/.config/isorun/signing.key     the private key, PEM (PKCS #8), mode 0600: whoever has it signs as you
    ~/.config/isorun/trusted.keys    a line for each key that the user trusts: ed25519 KEY NAME

A key is trusted because the user said so (`isorun keys trust`), never because it came with a package.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, MissingExtra, known_names
from isorun.own_machine import replace_private, user_folder, write_private
from isorun.packages.signatures import Signature, fingerprint, signed_content

__all__ = ["PublicKey", "Signing", "default_key", "forget", "new_key", "public_key", "signer", "trust", "trusted_keys"]

_KIND: Final = "ed25519"
_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,80}")
_LARGEST: Final = 64 * 2**10


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, and the name that the user gave to it; empty for one that nobody named."""

    key: bytes
    name: str = ""

    @property
    def line(self) -> str:
        """The key as one line, to be given to others."""
        return f"{_KIND} {base64.b64encode(self.key).decode()} {self.name}".rstrip()

    @property
    def fingerprint(self) -> str:
        """A short form, to be compared by voice."""
        return fingerprint(self.key)


def default_key() -> Path | None:
    """The user's own signing key: as ISORUN_KEY says, else the one in his folder; None where there is none."""
    if named := os.environ.get("ISORUN_KEY"):
        return Path(named)
    own = user_folder() / "signing.key"
    return own if own.is_file() else None


def new_key(path: Path | None = None) -> tuple[Path, PublicKey]:
    """A new private key in a file that nobody else can read; one that is there is never replaced."""
    made = _ed25519().Ed25519PrivateKey.generate()
    target = path or user_folder() / "signing.key"
    serialization = _serialization()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        write_private(target, made.private_bytes(*form))
    except FileExistsError:
        hint = "--output FILE names another; a key that is lost cannot be made again"
        raise InputError(f"there is a key already: {target}", hint=hint) from None
    except OSError as error:
        raise InputError(f"the key {target} cannot be written", found=error.strerror or str(error)) from None
    return target, PublicKey(_public_bytes(made))


Signing = tuple[PublicKey, Callable[[str], Signature]]
"""A public key, and what signs an address with the private one."""


def signer(path: Path) -> Signing:
    """The public key of a private one, and what signs addresses with it."""
    private = _private(path)
    key = _public_bytes(private)
    return PublicKey(key), lambda address: Signature(key, private.sign(signed_content(address)))


def public_key(text: str) -> PublicKey:
    """The key of a line (`ed25519 KEY NAME`), or of a file with one, or of a file with a private one."""
    if text.startswith(f"{_KIND} "):
        return _of_line(text)
    path = Path(text)
    content = _read(path)
    return (
        PublicKey(_public_bytes(_private(path)))
        if b"PRIVATE KEY" in content
        else _of_line(content.decode("utf-8", "replace"))
    )


def trusted_keys() -> tuple[PublicKey, ...]:
    """The keys that the user trusts."""
    path = user_folder() / "trusted.keys"
    if not path.is_file():
        return ()
    lines = _read(path).decode("utf-8", "replace").splitlines()
    return tuple(_of_line(line) for line in lines if line.strip() and not line.startswith("#"))


def trust(key: PublicKey, name: str) -> PublicKey:
    """Trust a key from now on, under this name. InputError where the name stands for another key."""
    if not _NAME.fullmatch(name):
        raise InputError("a key needs a name", found=repr(name)[:100], allowed="up to 80 characters without spaces")
    known = trusted_keys()
    if any(item.name == name and item.key != key.key for item in known):
        raise InputError(f"{name} is the name of another key", hint=f"isorun keys forget {name}, if that is over")
    named = PublicKey(key.key, name)
    _write([*(item for item in known if item.key != key.key), named])
    return named


def forget(name: str) -> None:
    """Trust the key of this name no more."""
    known = trusted_keys()
    if name not in [item.name for item in known]:
        raise InputError(
            f"no key of the name {name!r} is trusted", allowed=known_names(name, [item.name for item in known])
        )
    _write([item for item in known if item.name != name])


def _write(keys: list[PublicKey]) -> None:
    path = user_folder() / "trusted.keys"
    try:
        replace_private(path, "".join(f"{item.line}\n" for item in keys).encode())
    except OSError as error:
        raise InputError(f"{path} cannot be written", found=error.strerror or str(error)) from None


def _of_line(line: str) -> PublicKey:
    kind, _, rest = line.strip().partition(" ")
    text, _, name = rest.strip().partition(" ")
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if kind != _KIND or len(key) != 32:
        raise InputError(
            "this is no public key", found=repr(line)[:100], allowed=f"{_KIND} KEY NAME, or a file with that"
        )
    return PublicKey(key, name.strip())


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the key {str(path)!r} cannot be read", found=why, hint="isorun keys new makes one") from None


def _private(path: Path) -> Any:
    """The private key in a file; what is wrong with it is told without a word of its content."""
    content, ed25519, private = _read(path), _ed25519(), None
    with suppress(TypeError, ValueError):
        private = _serialization().load_pem_private_key(content, password=None)
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise InputError(
            f"{path} is no key to sign with",
            allowed="an Ed25519 private key as PEM (PKCS #8), without a passphrase",
            hint="isorun keys new makes one",
        )
    return private


def _public_bytes(private: Any) -> bytes:
    serialization = _serialization()
    found: bytes = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return found


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - an extra, for who signs
    except ImportError:
        raise MissingExtra("cryptography", "sign", "signing a package") from None
    return ed25519


def _serialization() -> Any:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    return serialization
