"""Settings of the training's own that are against the level: answered with the level's own, or told.

A level sets something once, when a framework is imported, and a line of the training sets it otherwise. Calls that end
in such a setting are reached in memory. Where the level knows what it wants it answers; where a setting changes what is
computed and not whether that repeats, it stays and is told with file and line.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, FrozenSet, Mapping

from .recorder import Recorder, shortened
from .seeding import calling, is_suspended, report, suspended


class Answers:
    """Settings of the training's own that are against the level, answered with the level's, and told."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def tell(
        self, owner: Any, name: str, told: str, matters: Callable[..., bool] = lambda *_args, **_kwargs: True
    ) -> None:
        """From now on calls of `owner.name` are told: they set what the level leaves to the training.

        matters: whether a call with these arguments is told.
        """
        original: Callable[..., Any] | None = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def followed(*args: Any, **kwargs: Any) -> Any:
            try:
                if not is_suspended() and matters(*args, **kwargs):
                    where = calling().where
                    value = " ".join(shortened(each) for each in (*args, *kwargs.values()))
                    message = f"{told} is {value} at {where}; it changes what is computed, and stays"
                    self._recorder.note_at("setting-told", (told, where), message)
            except Exception as error:  # this is the border between the worker and the training
                report(f"telling {told}", error)
            with suspended():
                return original(*args, **kwargs)

        setattr(owner, name, followed)

    def answer(
        self, owner: Any, name: str, told: str, wanted: Any, left: Callable[[str], bool] = lambda _: False, **also: Any
    ) -> None:
        """From now on `owner.name(value)` sets `wanted`, whatever it is given; nothing where there is no such call.

        left: whether a call from a module is left alone. also: what else the call is given otherwise, by name; what it
        is given by another name is the value.
        """
        original: Callable[..., Any] | None = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def answered(*args: Any, **kwargs: Any) -> Any:
            value = next(iter((*args, *(given for word, given in kwargs.items() if word not in also))), wanted)
            asked = value != wanted and not is_suspended()
            if asked and not left(sys._getframe(1).f_globals.get("__name__", "")):  # noqa: SLF001
                where = calling().where
                message = f"{told} was to be {shortened(value)} at {where}; the level answered with {wanted}"
                self._recorder.note_at("setting-answered", (told, where), message)
                return original(wanted, **also)
            return original(*args, **kwargs)

        setattr(owner, name, answered)


class HeldVariables:
    """Variables of the level, held against what the training's own lines put into its environment.

    Libraries read them when they are imported or start a device, which may be later. began: the environment at the
    start, the user's variables among it, which the level leaves as they are. level: what the level asks for; asked
    when a variable that was there at the start changes, because to know it takes longer than to start. may_be: whether
    a value does what the level wants, too; counts: variables that libraries set on purpose, for processes of theirs;
    told: those that the level leaves to the training, and that change what is computed.
    """

    def __init__(
        self,
        recorder: Recorder,
        level: Callable[[], Mapping[str, str]],
        may_be: Callable[[str, str], bool],
        counts: tuple[str, ...],
        told: Callable[[], FrozenSet[str]],
    ) -> None:
        self._recorder = recorder
        self._began = dict(os.environ)
        self._level = functools.lru_cache(maxsize=None)(level)
        self._may_be = may_be
        self._counts = counts
        self._told = functools.lru_cache(maxsize=None)(told)

    def hold(self) -> None:
        """From now on. Deleting is left alone, because who empties the environment deletes until nothing is left."""
        kind: Any = type(os.environ)
        put = kind.__setitem__

        @functools.wraps(put)
        def setting(environ: Any, name: Any, value: Any) -> None:
            put(environ, name, self._answer(environ, name, value))

        kind.__setitem__ = setting

    def _answer(self, environ: Any, name: Any, value: Any) -> Any:
        try:
            if environ is not os.environ or not isinstance(value, str) or self._began.get(name) == value:
                return value
            before = self._began.get(name)
            if before is None or name not in self._level():
                return self._tell(name, value)
            if self._may_be(name, value):
                return value
            caller = calling()
            if name in self._counts and caller.library:
                return value
            wanted = f"{value} {before}".strip() if before.startswith("--") else before  # flags join those of the level
            message = f"{name} was to be {shortened(value)} at {caller.where}; the level answered with {wanted}"
            self._recorder.note_at("setting-answered", (name, caller.where), message)
        except Exception as error:  # this is the border between the worker and the training
            report(f"holding {name}", error)
            return value
        return wanted

    def _tell(self, name: Any, value: str) -> str:
        """The value itself; most variables that programs set have nothing to do with what is computed."""
        caller = calling()
        if not caller.library and name in self._told():
            message = f"{name} is {shortened(value)} at {caller.where}; it changes what is computed, and stays"
            self._recorder.note_at("setting-told", (name, caller.where), message)
        return value
