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
from isorun.share.trackers import Chosen, GrowingSeries, TrackedRun, left_out_times, number_of
from isorun.share.trackers.mlflow import as_logged, named_artifacts, tracked_run

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
        asked = {"max_results": _PAGE, "view_type": "ALL"}
        found = {
            str(item.get("experiment_id")): item
            for item in server.pages("POST", "experiments/search", asked, "experiments")
        }
        names = {number: str(item.get("name", number)) for number, item in found.items()}
        deleted = 0
        for number in sorted(chosen.only(names, "experiment", tracker.place), key=lambda one: (len(one), one)):
            for item in server.runs(number):
                is_deleted = "deleted" in (
                    found[number].get("lifecycle_stage"),
                    _of(item, "info").get("lifecycle_stage"),
                )
                deleted += is_deleted
                if chosen.deleted or not is_deleted:
                    yield server.told(item, names[number], is_deleted=is_deleted)
        tracker.count_deleted(deleted, chosen)


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

    def runs(self, experiment: str) -> Iterator[Mapping[str, Any]]:
        """All runs of an experiment, those that were deleted included."""
        asked = {
            "experiment_ids": [experiment],
            "max_results": _PAGE,
            "order_by": ["attributes.start_time ASC"],
            "run_view_type": "ALL",
        }
        return self.pages("POST", "runs/search", asked, "runs")

    def told(self, item: Mapping[str, Any], experiment: str, *, is_deleted: bool) -> TrackedRun:
        """The run; InputError where the answer is none that MLflow gives."""
        try:
            return _run(self, item, experiment, is_deleted=is_deleted)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"{self._place} tells of a run in a way that MLflow does not",
                found=f"{type(error).__name__}: {error}"[:200],
                hint="check the address: it is the one that mlflow.set_tracking_uri has",
            ) from None

    def artifacts(self, run_id: str) -> list[str]:
        """What the run has in the server's store of files, as it is left out."""
        try:
            found = [str(item.get("path")) for item in self.pages("GET", "artifacts/list", {"run_id": run_id}, "files")]
        except InputError as refused:
            return [f"its artifacts, which the server does not list ({refused.found.partition(' ')[0]})"]
        return list(named_artifacts(sorted(found)))

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


def _of(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = item.get(key)
    return found if isinstance(found, Mapping) else {}


def _run(server: _Server, item: Mapping[str, Any], experiment: str, *, is_deleted: bool) -> TrackedRun:
    info, data = _of(item, "info"), _of(item, "data")
    run_id = str(info.get("run_id") or info.get("run_uuid"))
    points: dict[str, GrowingSeries] = {}
    left_out = server.artifacts(run_id)
    for metric in data.get("metrics", []):
        key, wrong = str(metric["key"]), 0
        axis = GrowingSeries()
        asked = {"run_id": run_id, "metric_key": key, "max_results": _HISTORY}
        for point in server.pages("GET", "metrics/get-history", asked, "metrics"):
            value = number_of(point.get("value", 0.0))
            if value is None:
                wrong += 1
            else:
                axis.add(float(point.get("step", 0)), int(point.get("timestamp", 0)) * 1_000, as_logged(value))
        points |= {key: axis} if axis.values else {}
        if wrong or not axis.values:
            left_out.append(left_out_times(f"a value of the metric {key} that is no number", wrong or 1))
    sets = [entry.get("dataset", {}) for entry in _of(item, "inputs").get("dataset_inputs", [])]
    left_out += [f"the data set {one.get('name')} ({one.get('digest')})" for one in sets]
    left_out += [f"the model {one.get('model_id')}" for one in _of(item, "outputs").get("model_outputs", [])]
    return tracked_run(
        run_id=run_id,
        experiment=experiment,
        name=str(info.get("run_name", "")),
        status=info.get("status"),
        times=(_whole(info.get("start_time")), _whole(info.get("end_time"))),
        params={str(one["key"]): str(one.get("value", "")) for one in data.get("params", [])},
        tags={str(one["key"]): str(one.get("value", "")) for one in data.get("tags", [])},
        points=points,
        left_out=left_out,
        uri=info.get("artifact_uri"),
        is_deleted=is_deleted,
    )
