"""Claims between processes and threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store_children import Nursery, completed, kill, python

from isorun.errors import StoreError
from isorun.store.checking import repair, verify
from isorun.store.folder import FolderStore

CLAIMING = """
store = FolderStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    claim = store.claim(f"cell{number}")
    if claim is not None:
        print(number, claim.attempt, flush=True)
print("done", flush=True)
sys.stdin.readline()
"""


def claimed_by_eight(folder: Path, cells: int) -> list[tuple[int, int]]:
    """Eight processes claim all cells at once and keep what they get; what they got."""
    FolderStore(folder).close()
    processes = [python(CLAIMING, folder, cells) for _ in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    with ThreadPoolExecutor(8) as readers:
        outputs = list(readers.map(_until_done, processes))
    for process in processes:
        _, errors = process.communicate("stop\n", timeout=60)
        assert errors == ""
    return [claim for output in outputs for claim in output]


def _until_done(process) -> list[tuple[int, int]]:
    found = []
    while (line := process.stdout.readline()) != "done\n":
        number, attempt = line.split()
        found.append((int(number), int(attempt)))
    return found


@pytest.mark.parametrize("cells", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_eight_processes_claim_each_cell_exactly_once(tmp_path: Path, cells: int):
    assert sorted(claimed_by_eight(tmp_path, cells)) == [(number, 1) for number in range(cells)]


def test_threads_claim_each_cell_exactly_once(tmp_path: Path):
    with FolderStore(tmp_path) as one, FolderStore(tmp_path) as other, ThreadPoolExecutor(8) as threads:
        jobs = [(store, f"cell{number}") for number in range(100) for store in (one, other) for _ in range(2)]
        claims = threads.map(lambda job: job[0].claim(job[1]), jobs)
        assert sorted(claim.cell_id for claim in claims if claim) == sorted(f"cell{number}" for number in range(100))


def test_a_killed_holders_claims_are_free_again(tmp_path: Path):
    nursery = Nursery("""
    store = FolderStore(Path(task))
    os.write(1, f"{store.claim('a').attempt}\\n".encode())
    import time; time.sleep(60)
    """)
    pid = nursery.start(tmp_path)
    assert nursery.line() == "1"
    with FolderStore(tmp_path) as store:
        assert store.claim("a") is None
        kill(pid)
        assert nursery.line() == "gone -9"
        claim = store.claim("a")
        assert claim is not None
        assert claim.attempt == 2
    nursery.close()


def test_closing_one_store_keeps_the_claims_of_another_in_the_same_process(tmp_path: Path):
    """Closing any descriptor of a file drops a process's locks on it; that must not happen behind our back."""
    with FolderStore(tmp_path) as kept:
        assert kept.claim("a") is not None
        other = FolderStore(tmp_path)
        assert other.claim("b") is not None
        other.close()
        found = completed("print(FolderStore(Path(sys.argv[1])).claim('a'))", tmp_path)
    assert found == "None\n"


def test_a_forked_child_holds_nothing_and_is_told_to_open_anew(tmp_path: Path):
    output = completed(
        """
        from isorun.errors import StoreError
        store = FolderStore(Path(sys.argv[1]))
        assert store.claim("a") is not None
        if os.fork() == 0:
            try:
                store.claim("b")
            except StoreError as error:
                os.write(1, str(error).encode())
            os.write(1, f" {FolderStore(Path(sys.argv[1])).claim('a')}".encode())
            os._exit(0)
        os.wait()
        """,
        tmp_path,
    )
    assert "open the store anew in the child" in output
    assert output.endswith(" None")


def test_attempts_grow_over_reopenings(tmp_path: Path):
    for expected in (1, 2, 3, 4):
        with FolderStore(tmp_path) as store:
            claim = store.claim("a")
            assert claim is not None
            assert claim.attempt == expected


def test_an_error_while_claiming_gives_the_claim_back(tmp_path: Path):
    with FolderStore(tmp_path) as store:
        store.claim("other")
        (tmp_path / "claims").rename(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="claiming cell a"):
            store.claim("a")
        (tmp_path / "elsewhere").rename(tmp_path / "claims")
        assert store.claim("a") is not None


def test_a_writer_waits_for_its_turn_without_blocking_claims(tmp_path: Path):
    with FolderStore(tmp_path) as first, FolderStore(tmp_path) as second:
        with first._writing():
            waiting = threading.Thread(target=second.pack)
            waiting.start()
            assert second.claim("a") is not None
            assert waiting.is_alive()
        waiting.join(timeout=30)
        assert not waiting.is_alive()


WRONG_CLAIMS = [
    '{"attempt": 99999999999999999999}',
    '{"attempt": true}',
    '{"attempt": -1}',
    '{"attempt": 1, "host": "h", "pid": 7, "since": 5}',
    '{"attempt": 1, "host": "h", "pid": 7, "since": "zz"}',
    '{"attempt": 1, "host": "h", "pid": {}, "since": "2026-01-01T00:00:00+00:00"}',
    '{"attempt": 1, "host": [1], "pid": 7, "since": "2026-01-01T00:00:00+00:00"}',
    '{"attempt": 1, "since": "2026-01-01T00:00:00"}',
    '{"attempt": 1, "host": "h", "pid": 7}',
    "[" * 100_000,
    "{}",
    "5",
    "",
]


@pytest.mark.parametrize("text", WRONG_CLAIMS)
def test_a_claim_that_anybody_may_have_written_stops_no_study(tmp_path: Path, text: str):
    with FolderStore(tmp_path) as store:
        (tmp_path / "claims").mkdir(exist_ok=True)
        (tmp_path / "runs" / "cell-3").mkdir(parents=True)
        (tmp_path / "claims" / "cell").write_text(text)
        assert list(store.holders()) == []
        claim = store.claim("cell")
        assert claim is not None
        assert claim.attempt == 4
        assert [note.code for note in store.notes()] == ["store-claim-unreadable"]
        (tmp_path / "claims" / "cell").write_text(text)
        assert list(store.holders()) == [], "it is held, and nobody can say by whom"


def test_an_unreadable_claim_is_named_and_set_aside_and_attempts_still_grow(tmp_path: Path):
    FolderStore(tmp_path).close()
    (tmp_path / "claims").mkdir(exist_ok=True)
    (tmp_path / "runs" / "cell-3").mkdir(parents=True)
    (tmp_path / "claims" / "cell").write_text(WRONG_CLAIMS[0])
    assert [item.where for item in verify(tmp_path).damage] == [str(tmp_path / "claims" / "cell")]
    assert len(repair(tmp_path).aside) == 1
    assert verify(tmp_path).damage == ()
    with FolderStore(tmp_path) as store:
        claim = store.claim("cell")
        assert claim is not None
        assert claim.attempt == 4
        assert store.notes() == ()
