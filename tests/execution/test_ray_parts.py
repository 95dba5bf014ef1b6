"""Parts of the Ray executor that need no Ray: whose cluster it is, and what comes of nodes that refuse runs."""

import os
import socket
import stat
from contextlib import contextmanager
from unittest.mock import Mock

import pytest

from isorun.errors import ExecutionError
from isorun.execution import ray
from isorun.execution.ray import RayExecutor, link, nearby, refusals
from isorun.execution.ray.cluster import Cluster, Needs
from isorun.execution.ray.refusals import Refusals

REMOTE = "192.0.2.77:6379"


@pytest.fixture
def current(tmp_path, monkeypatch):
    """A function that writes the file that Ray leaves on a machine, in Ray's folder, and gives its path."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    folder = tmp_path / "ray"
    folder.mkdir(mode=0o755)

    def write(address):
        path = folder / "ray_current_cluster"
        path.write_text(address)
        path.chmod(0o644)
        return path

    return write


@contextmanager
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_cluster_of_this_machine_is_taken_if_this_user_listens_there_whoever_wrote_its_address(current, monkeypatch):
    with listener() as address:
        current(address).parent.chmod(0o777)  # as Ray leaves it
        assert nearby.cluster_here() == address
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        assert nearby.cluster_here() == "", "somebody else's cluster"
    monkeypatch.undo()


def test_where_nobody_listens_any_more_there_is_no_cluster(current):
    with listener() as address:
        current(address)
    assert nearby.cluster_here() == ""


def test_the_address_of_another_machine_is_believed_from_a_file_that_only_this_user_can_write(current, tmp_path):
    assert nearby.cluster_here() == "", "no file at all"
    path = current(REMOTE)
    assert nearby.cluster_here() == REMOTE
    path.chmod(0o664)
    assert nearby.cluster_here() == "", "the group can write the file"
    path.chmod(0o644)
    path.parent.chmod(0o777)
    assert nearby.cluster_here() == "", "anybody can put another file there"
    path.parent.chmod(0o755)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert nearby.cluster_here() == "", "a link"
    path.unlink()
    path.parent.rename(tmp_path / "other")
    (tmp_path / "other" / path.name).write_text(REMOTE)
    path.parent.symlink_to(tmp_path / "other")
    assert nearby.cluster_here() == "", "the folder is a link"


def test_the_address_of_another_machine_from_somebody_elses_file_is_not_believed(current, monkeypatch):
    current(REMOTE)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert nearby.cluster_here() == ""
    monkeypatch.undo()


@pytest.mark.parametrize("text", ["", "nonsense", "127.0.0.1:x", "127.0.0.1:"])
def test_a_file_that_names_nothing_is_no_cluster(current, text):
    current(text)
    assert nearby.cluster_here() == ""


def test_a_cluster_that_is_started_has_a_token_of_its_own_unless_the_user_said_otherwise(tmp_path, monkeypatch):
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    given = nearby.token_variables(tmp_path)
    path = tmp_path / "token"
    assert given == {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = path.read_text()
    assert len(first) == 64
    nearby.token_variables(tmp_path)
    assert path.read_text() != first
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/theirs")
    assert nearby.token_variables(tmp_path) == {"RAY_AUTH_MODE": "token"}
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert nearby.token_variables(tmp_path) == {}


def test_before_the_first_run_a_cluster_fails_when_all_of_its_nodes_refuse():
    noted = Refusals()
    noted.note("a", 1.0)
    assert not noted.by_all({"a", "b"})
    assert noted.kept_out({"a", "b"}) == ("a",)
    noted.note("b", 1.0)
    assert noted.by_all({"a", "b"})
    assert noted.kept_out({"a", "b"}) == (), "nothing would be left"
    assert not noted.by_all(set()), "nodes may come"


def test_after_it_all_have_to_refuse_again_and_again_and_one_round_counts_once(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(refusals.time, "monotonic", lambda: now[0])
    noted = Refusals()
    noted.forget("a")
    for _ in range(8):
        noted.note("a", 99.0)  # all sent before the first of them was refused
    assert not noted.by_all({"a"})
    for sent in (101.0, 103.0):
        now[0] = sent + 1
        noted.note("a", sent)
    assert noted.by_all({"a"})
    noted.forget("a")
    assert not noted.by_all({"a"})
    noted.note("a", 200.0)
    now[0] += 61
    assert noted.kept_out({"a", "b"}) == (), "it has another chance"


def test_what_ray_itself_refuses_counts_for_all_nodes():
    noted = Refusals()
    noted.note("", 1.0)
    assert noted.by_all({"a", "b"})
    assert noted.kept_out({"a", "b"}) == ()


def test_only_nodes_that_could_take_the_run_count():
    told = {"nodes": [{"id": "a", "has": {"CPU": 1.0}}, {"id": "b", "has": {"CPU": 4.0}}], "to_come": []}
    cluster = Cluster.from_json("x", "2", told)
    assert cluster.with_room(Needs(cpus=2)) == {"b"}
    assert cluster.with_room(Needs()) == {"a", "b"}


class QuietLink:
    """A driver that says what a test has it say."""

    made: list["QuietLink"]

    def __init__(self, settings, heard, ended):
        self.heard, self.ended = heard, ended
        self.made.append(self)

    def send(self, message):
        pass

    def ask_to_end(self, seconds):
        return True

    def close(self):
        pass


@pytest.fixture
def links(monkeypatch):
    monkeypatch.setattr(QuietLink, "made", [], raising=False)
    monkeypatch.setattr(ray, "Link", QuietLink)
    monkeypatch.setattr(ray, "_AGAIN_SECONDS", 0.0)
    return QuietLink.made


REFUSED = {"say": "refused", "refusal": {"what": "no Ray cluster answers at h:1", "found": ""}}


def test_a_head_that_refuses_while_it_comes_back_ends_nothing_before_patience_is_over(tmp_path, links, monkeypatch):
    """Between that refusal and the end of its driver work asks for room: it is none, and no error."""
    executor = RayExecutor(tmp_path / "runs", url="ray:h:1")
    node = {"id": "a", "host": "h", "has": {"CPU": 2.0}}
    connected = {"say": "connected", "address": "h:1", "ray": "2.60", "nodes": [node], "to_come": []}
    links[-1].heard(connected, b"")
    assert executor.capacity == 4
    links[-1].ended(links[-1], "the head has gone")
    links[-1].heard(REFUSED, b"")
    assert executor.capacity == 0
    links[-1].ended(links[-1], "")
    assert len(links) == 3
    links[-1].heard(REFUSED, b"")
    monkeypatch.setattr(executor, "_lost_at", executor._lost_at - 601)
    links[-1].ended(links[-1], "")
    with pytest.raises(ExecutionError, match="no Ray cluster answers"):
        assert executor.capacity
    executor.close()


def test_a_cluster_that_refuses_at_first_is_told_at_once(tmp_path, links):
    executor = RayExecutor(tmp_path / "runs", url="ray:h:1")
    links[-1].heard(REFUSED, b"")
    with pytest.raises(ExecutionError, match="no Ray cluster answers"):
        assert executor.capacity
    executor.close()


def test_a_driver_whose_word_cannot_be_taken_has_ended():
    """Else its runs would be waited for without end."""
    told = link.Link.__new__(link.Link)
    told._frames, told._process, told._reader, told._ended = Mock(), Mock(), Mock(), Mock()
    told._tail, told._heard = b"last words", Mock(side_effect=KeyError("run_id"))
    told._frames.receive.return_value = ({"say": "event"}, b"")
    with pytest.raises(KeyError):
        told._hear()
    told._process.kill.assert_called_once_with()
    told._ended.assert_called_once_with(told, "last words")
