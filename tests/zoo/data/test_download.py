"""Downloads from servers that break off, lie, dawdle or are not there."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request

import pytest

from isorun.errors import DataError
from isorun.zoo.data import part_file, web
from isorun.zoo.data.dataset import Checksum
from isorun.zoo.data.download import DownloadWatcher, Patience, download, file_digest
from isorun.zoo.data.web import SourceFailed

HASTY = Patience(timeout=2.0, pauses=(0.0, 0.0))


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_arrives_whole_and_checked(server, published, content, tmp_path):
    server.serve("/big.bin", content)
    got = download(published(), tmp_path / "set" / "big.bin", patience=HASTY)
    assert got.path.read_bytes() == content
    assert (got.status, got.size, got.checksum.value) == (
        "downloaded",
        len(content),
        hashlib.sha256(content).hexdigest(),
    )
    assert names(tmp_path / "set") == ["big.bin"]


def test_a_broken_connection_is_taken_up_where_it_broke(server, published, content, tmp_path):
    page = server.serve("/big.bin", content, break_after=100_000, breaks=2)
    got = download(published(), tmp_path / "big.bin", patience=HASTY)
    assert got.path.read_bytes() == content
    assert page.requests == [None, "bytes=100000-", "bytes=200000-"]


def test_a_server_that_ignores_ranges_is_asked_from_the_start(server, published, content, tmp_path):
    page = server.serve("/big.bin", content, ranges=False, break_after=100_000)
    got = download(published(), tmp_path / "big.bin", patience=HASTY)
    assert got.path.read_bytes() == content
    assert page.requests == [None, "bytes=100000-"]


def test_a_part_of_an_earlier_download_is_gone_on_with(server, published, content, tmp_path):
    page = server.serve("/big.bin", content)
    (tmp_path / "big.bin.part").write_bytes(content[:123_456])
    got = download(published(), tmp_path / "big.bin", patience=HASTY)
    assert (got.path.read_bytes(), got.status, page.requests) == (content, "resumed", ["bytes=123456-"])


def test_a_part_with_wrong_bytes_is_thrown_away_and_fetched_again(server, published, content, tmp_path):
    page = server.serve("/big.bin", content)
    (tmp_path / "big.bin.part").write_bytes(b"x" * 1000)
    got = download(published(), tmp_path / "big.bin", patience=HASTY)
    assert (got.path.read_bytes(), got.status, page.requests) == (content, "downloaded", ["bytes=1000-", None])


@pytest.mark.parametrize("size", [300_000, 400_000])
def test_a_part_as_long_as_the_file_or_longer_does_no_harm(server, published, content, tmp_path, size):
    server.serve("/big.bin", content)
    (tmp_path / "big.bin.part").write_bytes((content * 2)[:size])
    assert download(published(), tmp_path / "big.bin", patience=HASTY).path.read_bytes() == content


def test_a_whole_part_of_a_file_of_unknown_size_does_no_harm(server, published, content, tmp_path):
    server.serve("/big.bin", content)
    (tmp_path / "big.bin.part").write_bytes(content)
    assert download(published(size=None), tmp_path / "big.bin", patience=HASTY).path.read_bytes() == content


def test_wrong_bytes_name_file_expected_and_found_and_leave_nothing(server, published, content, tmp_path):
    wrong = bytes(len(content))
    server.serve("/big.bin", wrong)
    (tmp_path / "neighbour.bin").write_bytes(b"mine")
    (tmp_path / "big.bin").write_bytes(b"an older copy")
    with pytest.raises(DataError) as caught:
        download(published(), tmp_path / "big.bin", patience=HASTY)
    text = str(caught.value)
    assert "big.bin" in text
    assert hashlib.sha256(content).hexdigest() in text
    assert hashlib.sha256(wrong).hexdigest() in text
    assert names(tmp_path) == ["big.bin", "neighbour.bin"]
    assert (tmp_path / "big.bin").read_bytes() == b"an older copy"


def test_a_page_of_another_size_is_not_even_read(server, published, content, tmp_path):
    server.serve("/big.bin", b"<html>please log in</html>")
    with pytest.raises(DataError, match="offers 26 bytes, but the file has 300,000"):
        download(published(), tmp_path / "new" / "big.bin", patience=HASTY)
    assert names(tmp_path) == []


def test_a_server_that_never_stops_is_cut_off(server, published, content, tmp_path):
    server.serve("/big.bin", content * 3, length=False)
    with pytest.raises(DataError, match="more than the file has"):
        download(published(), tmp_path / "big.bin", patience=HASTY)


def test_a_mirror_helps_when_the_first_address_has_nothing(server, published, content, tmp_path):
    server.serve("/mirror.bin", content)
    file = published("/nothing.bin", "/mirror.bin")
    assert download(file, tmp_path / "big.bin", patience=HASTY).path.read_bytes() == content


def test_a_mirror_helps_when_the_first_address_sends_other_bytes(server, published, content, tmp_path):
    server.serve("/bad.bin", bytes(len(content)))
    server.serve("/mirror.bin", content)
    file = published("/bad.bin", "/mirror.bin")
    assert download(file, tmp_path / "big.bin", patience=HASTY).path.read_bytes() == content


def test_a_missing_page_is_named_with_its_address_and_asked_for_once(server, published, tmp_path):
    with pytest.raises(DataError, match=r"/big\.bin: HTTP 404") as caught:
        download(published(), tmp_path / "big.bin", patience=HASTY)
    assert "--from FOLDER" in caught.value.hint
    assert names(tmp_path) == []


def test_a_busy_server_is_asked_again(server, published, tmp_path):
    page = server.serve("/big.bin", status=503)
    with pytest.raises(DataError, match="HTTP 503"):
        download(published(), tmp_path / "big.bin", patience=HASTY)
    assert len(page.requests) == 3


def test_a_server_that_stalls_is_given_up_and_what_came_is_kept(server, published, content, tmp_path):
    server.serve("/big.bin", content, ranges=False, chunk=150_000, delay=1.0)
    with pytest.raises(DataError, match="no answer in time") as caught:
        download(published(), tmp_path / "big.bin", patience=Patience(timeout=0.2, pauses=()))
    assert names(tmp_path) == ["big.bin.part"]
    assert "150,000 bytes are kept" in caught.value.hint


def test_a_machine_without_a_network_is_told_how_to_bring_the_files(published, tmp_path):
    file = published(urls=("https://no-such-host.invalid/big.bin",))
    with pytest.raises(DataError, match="is this machine offline") as caught:
        download(file, tmp_path / "set" / "big.bin", patience=HASTY)
    assert "--from FOLDER" in caught.value.hint
    assert names(tmp_path) == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "/etc/passwd"])
def test_only_web_addresses_are_downloaded_from(published, tmp_path, url):
    with pytest.raises(DataError, match="no address to download from"):
        download(published(urls=(url,)), tmp_path / "big.bin", patience=HASTY)


def test_plain_http_needs_a_checksum(published, tmp_path):
    file = published(urls=("http://example.invalid/big.bin",), checksum=None)
    with pytest.raises(DataError, match="no address to download from"):
        download(file, tmp_path / "big.bin", patience=HASTY)


def test_a_server_cannot_lead_to_a_local_file(server, published, tmp_path):
    server.serve("/big.bin", status=302, location="file:///etc/passwd")
    with pytest.raises(DataError, match="not allowed"):
        download(published(), tmp_path / "big.bin", patience=HASTY)


def test_a_server_cannot_lead_from_https_to_http():
    request = urllib.request.Request("https://safe.invalid/x")
    with pytest.raises(SourceFailed, match="not safe"):
        web._NoDowngrade().redirect_request(request, None, 302, "Found", {}, "http://safe.invalid/x")


def test_a_server_may_lead_to_another_page(server, published, content, tmp_path):
    server.serve("/big.bin", status=302, location=server.url("/there.bin"))
    server.serve("/there.bin", content)
    assert download(published(), tmp_path / "big.bin", patience=HASTY).path.read_bytes() == content


def test_a_file_without_published_checksum_is_written_down_and_held_to(server, published, content, tmp_path):
    page = server.serve("/big.bin", content)
    file = published(checksum=None, size=None)
    first = download(file, tmp_path / "big.bin", patience=HASTY)
    assert first.recorded
    assert (tmp_path / "big.bin.sha256").read_text() == f"{hashlib.sha256(content).hexdigest()}  big.bin\n"
    page.content = content[::-1]
    with pytest.raises(DataError, match="written down at the first download"):
        download(file, tmp_path / "big.bin", patience=HASTY)
    assert (tmp_path / "big.bin").read_bytes() == content


def test_the_checksum_of_git_is_the_one_git_computes(server, published, tmp_path):
    server.serve("/big.bin", b"what is up, doc?")
    known = Checksum("git", "bd9dbf5aae1a3862dd1526723246b20206e5fc37", "Pro Git, chapter 10.2")
    got = download(published(checksum=known, size=None), tmp_path / "big.bin", patience=HASTY)
    assert got.checksum.value == known.value


def test_a_full_disk_says_what_is_needed_and_free_and_keeps_no_part(server, published, content, tmp_path, monkeypatch):
    server.serve("/big.bin", content, chunk=1000)
    calls = []

    def full(descriptor, block):
        calls.append(len(block))
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(descriptor, block)

    original = os.write
    monkeypatch.setattr(part_file.os, "write", full)
    with pytest.raises(DataError, match="the disk is full") as caught:
        download(published(), tmp_path / "big.bin", patience=HASTY)
    assert caught.value.allowed == "300,000 bytes needed"
    assert "bytes free" in caught.value.found
    assert names(tmp_path) == []


def test_a_file_larger_than_the_free_space_is_not_begun(server, published, content, tmp_path):
    page = server.serve("/big.bin", content)
    with pytest.raises(DataError, match="the disk is full"):
        download(published(size=1 << 60), tmp_path / "big.bin", patience=HASTY)
    assert page.requests == []
    assert names(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_really_full_disk_keeps_no_part(server, published, content, tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "isorun-test", disk], check=False).returncode:
        pytest.skip("this machine mounts nothing")
    try:
        monkeypatch.setattr(part_file.PartFile, "ensure_room", lambda *_: None)
        server.serve("/big.bin", content)
        with pytest.raises(DataError, match="the disk is full"):
            download(published(), disk / "big.bin", patience=HASTY)
        assert names(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_folder_that_cannot_be_written_is_named(server, published, content, tmp_path):
    server.serve("/big.bin", content)
    (tmp_path / "set").write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot be written") as caught:
        download(published(), tmp_path / "set" / "big.bin", patience=HASTY)
    assert "ISORUN_DATA" in caught.value.hint


def test_ctrl_c_keeps_what_has_arrived(server, published, content, tmp_path):
    server.serve("/big.bin", content, break_after=100_000)

    class Impatient(DownloadWatcher):
        def moved(self, size):
            if size >= 100_000:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(published(), tmp_path / "big.bin", watcher=Impatient(), patience=HASTY)
    assert (tmp_path / "big.bin.part").read_bytes() == content[:100_000]
    assert download(published(), tmp_path / "big.bin", patience=HASTY).status == "resumed"


SCRIPT = """
    import sys
    from pathlib import Path
    from isorun.zoo.data.dataset import Checksum, RemoteFile
    from isorun.zoo.data.download import download
    url, size, sha256, target = sys.argv[1:]
    print(download(RemoteFile("big.bin", (url,), int(size), Checksum("sha256", sha256, "")), Path(target)).status)
"""


def started(server, content, target):
    words = [server.url("/big.bin"), str(len(content)), hashlib.sha256(content).hexdigest(), str(target)]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_a_killed_download_is_gone_on_with(server, published, content, tmp_path):
    page = server.serve("/big.bin", content, chunk=10_000, delay=0.1)
    target = tmp_path / "big.bin"
    part = tmp_path / "big.bin.part"
    with started(server, content, target) as process:
        until(lambda: part.exists() and part.stat().st_size >= 20_000)
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = part.stat().st_size
    assert names(tmp_path) == ["big.bin.part"]
    assert 20_000 <= kept < len(content)
    page.delay = 0.0
    got = download(published(), target, patience=HASTY)
    assert (got.status, got.path.read_bytes()) == ("resumed", content)
    assert page.requests[-1] == f"bytes={kept}-"


def test_two_processes_that_want_the_same_file_fetch_it_once(server, content, tmp_path):
    page = server.serve("/big.bin", content, chunk=30_000, delay=0.05)
    target = tmp_path / "big.bin"
    with started(server, content, target) as one, started(server, content, target) as two:
        printed = [process.communicate(timeout=30) for process in (one, two)]
    assert sorted(out.strip() for out, _ in printed) in (["already there", "downloaded"], ["downloaded", "downloaded"])
    assert [error for _, error in printed] == ["", ""]
    assert target.read_bytes() == content
    assert names(tmp_path) == ["big.bin"]
    assert all(asked is None for asked in page.requests)


def test_threads_that_want_the_same_file_do_not_mix_their_bytes(server, published, content, tmp_path):
    server.serve("/big.bin", content, chunk=50_000, delay=0.02)
    results = []
    threads = [
        threading.Thread(
            target=lambda: results.append(download(published(), tmp_path / "big.bin", patience=HASTY).status)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert file_digest(tmp_path / "big.bin", "sha256") == hashlib.sha256(content).hexdigest()
    assert names(tmp_path) == ["big.bin"]
