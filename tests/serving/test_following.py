"""While a study runs its page follows it; a stream ends when nothing runs any more."""

import asyncio
import json
import time

from read_pages import sound
from served import served
from shown_studies import kept, optimizers

import isorun
from isorun.serving.pages.following import Followers, told


def gathered(followers, seen, **options):
    """The events of a stream that sees these, one after the other."""
    looks = iter(seen)

    async def read():
        return [event async for event in followers.events(lambda: next(looks), every=0.0, **options)]

    return asyncio.run(read())


def looked(revision, at_work=True, standing="one runs"):
    return {"revision": revision, "at_work": at_work, "standing": standing}


def test_an_event_comes_at_once_and_when_something_came_and_the_last_when_all_is_done():
    first, again, *events, end = gathered(
        Followers(), [looked("a"), looked("a"), looked("b"), looked("c", at_work=False)]
    )
    assert first == "retry: 5000\n\n"
    told = [json.loads(event.partition("data: ")[2]) for event in (again, events[1], end)]
    assert [one["revision"] for one in told] == ["a", "b", "c"]
    assert events[0].startswith(":")


def test_a_stream_ends_after_a_while_and_there_are_not_more_than_there_may_be():
    followers = Followers(most=1)
    assert len(gathered(followers, [looked("a")] * 3, longest=-1.0)) == 2

    async def two():
        one = followers.events(lambda: looked("a"), every=60.0)
        await anext(one)
        full = followers.is_full
        await one.aclose()
        return full, followers.is_full

    assert asyncio.run(two()) == (True, False)


def test_what_is_told_of_a_study_that_rests():
    assert told("abc", None) == {"revision": "abc", "at_work": False, "standing": ""}


def test_the_page_of_a_study_that_runs_follows_it_and_says_how_without_a_script(tmp_path):
    study = optimizers(tmp_path, approaches={"adam": "python train.py"}, levels=["default"], seeds=[1], repeats=3)
    (tmp_path / "train.py").write_text("import isorun\n")
    place = tmp_path / ".isorun"
    kept(optimizers(tmp_path, approaches={"adam": "python train.py"}, levels=["default"], seeds=[1]), place)
    isorun.workflow.remember(study, store=str(place))
    with isorun.session.open_store(str(place)) as store, served([str(place)]) as client:
        address = next(one["page"] for one in client.get("/home.json").json["studies"])
        assert "It runs now" not in sound(client.get(address).body.decode()).shown
        cell = isorun.workflow.missing(study, store=store)[0]
        claim = store.claim(cell.id)
        time.sleep(1.1)
        page = sound(client.get(address).body.decode())
        assert "2 of 3 finished, 1 running" in page.shown
        assert "Load this page again" in page.shown
        (script,) = page.named("script")
        assert client.get(script.attributes["src"]).status == 200
        claim.release()
        time.sleep(1.1)
        stream = client.get(address.replace("/study", "/events"))
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert '"at_work": false' in stream.body.decode()
