"""A running MLflow server, read by its documented REST API with the standard library alone.

Who may ask is said as MLflow itself has it said: `user:password@` in the address, or MLFLOW_TRACKING_USERNAME and
MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN. None of it is kept or shown.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlencode, urlsplit

from isorun.errors import InputError
from isorun.share.trackers import Chosen, GrowingSeries, TrackedRun, number_of
from isorun.share.trackers.mlflow import tracked_run

if TYPE_CHECKING:
    from isorun.share.trackers.mlflow import Mlflow

__all__ = ["read_server"]

_PAGE: Final = 500
_HISTORY: Final = 25_000
_SECONDS: Final = 60.0
_LONGEST_ANSWER: Final = 1 << 30


def read_server(tracker: Mlflow, chosen: Chosen) -> Iterator[TrackedRun]:
    """The runs of the chosen experiments."""
    with closing(_Server(tracker)) as server:
        found = server.pages("POST", "experiments/search", {"max_results": _PAGE}, "experiments")
        names = {str(item["experiment_id"]): str(item["name"]) for item in found}
        for number in sorted(chosen.only(names, "experiment", tracker.place), key=lambda one: (len(one), one)):
            asked = {"experiment_ids": [number], "max_results": _PAGE, "order_by": ["attributes.start_time ASC"]}
            for item in server.pages("POST", "runs/search", asked, "runs"):
                yield _run(server, item, names[number])


class _Server:
    """One connection that is kept open: thousands of small questions are asked."""

    def __init__(self, tracker: Mlflow) -> None:
        self._place = tracker.place
        url = urlsplit(tracker.where)
        kind = http.client.HTTPSConnection if url.scheme.lower() == "https" else http.client.HTTPConnection
        try:
            self._connection = kind(url.hostname or "", url.port, timeout=_SECONDS)
        except (ValueError, http.client.InvalidURL) as error:
            raise InputError(f"{self._place} is no address", found=str(error)) from None
        self._path = f"{url.path.rstrip('/')}/api/2.0/mlflow/"
        self._headers = {"Content-Type": "application/json", **_authorization(url.username, url.password)}

    def close(self) -> None:
        self._connection.close()

    def pages(self, method: str, what: str, asked: dict[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
        """All items of an answer that comes in pages."""
        token = ""
        while True:
            answer = self._ask(method, what, {**asked, **({"page_token": token} if token else {})})
            items = answer.get(key, [])
            yield from (item for item in items if isinstance(item, dict))
            token = str(answer.get("next_page_token") or "")
            if not token:
                return

    def _ask(self, method: str, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        path, body = f"{self._path}{what}", None
        if method == "GET":
            path += f"?{urlencode(asked)}"
        else:
            body = json.dumps(asked)
        try:
            self._connection.request(method, path, body, self._headers)
            answer = self._connection.getresponse()
            text = answer.read(_LONGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InputError(
                f"{self._place} does not answer", found=why, hint="is it running? mlflow server --port 5000"
            ) from None
        if answer.status != http.HTTPStatus.OK:
            raise self._refused(answer.status, text)
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(f"{self._place} answers with something that is no JSON", found=repr(text[:60]))
        return found

    def _refused(self, status: int, text: bytes) -> InputError:
        hint = "check the address: it is the one that mlflow.set_tracking_uri has"
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            hint = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
        said = text[:200].decode("utf-8", "replace").strip()
        return InputError(f"{self._place} refused to answer", found=f"{status} {said}", hint=hint)


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    token = os.environ.get("MLFLOW_TRACKING_TOKEN", "")
    name = unquote(user) if user else os.environ.get("MLFLOW_TRACKING_USERNAME", "")
    secret = unquote(password) if password else os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
    if name:
        return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode("ascii")}
    return {"Authorization": f"Bearer {token}"} if token else {}


def _whole(value: Any) -> int | None:
    return int(value) if value else None


def _run(server: _Server, item: Mapping[str, Any], experiment: str) -> TrackedRun:
    info, data = item.get("info", {}), item.get("data", {})
    run_id = str(info.get("run_id") or info.get("run_uuid"))
    points: dict[str, GrowingSeries] = {}
    for metric in data.get("metrics", []):
        key = str(metric["key"])
        axis = points[key] = GrowingSeries()
        asked = {"run_id": run_id, "metric_key": key, "max_results": _HISTORY}
        for point in server.pages("GET", "metrics/get-history", asked, "metrics"):
            value = number_of(point.get("value", 0.0))
            if value is not None:
                axis.add(float(point.get("step", 0)), int(point.get("timestamp", 0)) * 1_000, value)
    sets = [entry.get("dataset", {}) for entry in item.get("inputs", {}).get("dataset_inputs", [])]
    return tracked_run(
        run_id=run_id,
        experiment=experiment,
        name=str(info.get("run_name", "")),
        status=info.get("status"),
        times=(_whole(info.get("start_time")), _whole(info.get("end_time"))),
        params={str(one["key"]): str(one.get("value", "")) for one in data.get("params", [])},
        tags={str(one["key"]): str(one.get("value", "")) for one in data.get("tags", [])},
        points=points,
        left_out=(f"the data set {one.get('name')} ({one.get('digest')})" for one in sets),
    )
