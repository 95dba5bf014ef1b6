"""Who may do what to what: every door of the API, five who ask, a private and a public package."""

import pytest
from asking import OWN_PAGE, all_doors

from isorun.serving import api
from registries_made import package, push

WHO = ("stranger", "carl", "reader", "ann", "root")
PRIVATE, PUBLIC = "lab/a/private", "lab/a/public"
JSON = {
    "/api/setup": {"user": "eve"},
    "/api/users": {"user": "eve"},
    "/api/tokens": {"scopes": ["read"]},
    "offers": {"sha256": "0" * 64, "bytes": 10},
    "visibility": {"public": True},
    "yank": {"reason": "wrong"},
}
# What each door answers to stranger, carl, reader, ann and root; of a package: of a private one, and of a public one.
EXPECTED = {
    ("GET", "/health"): "200 200 200 200 200",
    ("GET", "/login"): "200 200 200 200 200",
    ("POST", "/login"): "403 403 403 403 403",  # without a token in the form
    ("POST", "/logout"): "403 303 303 303 303",  # a stranger's request says no Origin
    ("GET", "/api/me"): "200 200 200 200 200",
    ("POST", "/api/setup"): "403 403 403 403 403",
    ("GET", "/api/users"): "401 403 403 403 200",
    ("POST", "/api/users"): "403 403 403 403 201",
    ("DELETE", "/api/users/{user}"): "403 403 403 403 204",
    ("PUT", "/api/owners/{owner}/members/{user}"): "403 403 403 204 204",
    ("DELETE", "/api/owners/{owner}/members/{user}"): "403 403 403 204 204",
    ("GET", "/api/tokens"): "401 200 200 200 200",
    ("POST", "/api/tokens"): "403 201 403 201 201",
    ("DELETE", "/api/tokens/{number}"): "403 404 404 404 204",  # of bob
    ("GET", "/api/search"): "200 200 200 200 200",
    ("GET", "/api/packages/{owner}/{project}/{name}"): ("404 404 200 200 200", "200 200 200 200 200"),
    ("POST", "/api/packages/{owner}/{project}/{name}/offers"): ("403 403 403 200 200",) * 2,
    ("PUT", "/api/packages/{owner}/{project}/{name}/visibility"): ("403 404 403 204 204", "403 403 403 204 204"),
    ("GET", "/api/packages/{owner}/{project}/{name}/versions/{version}"): (
        "404 404 200 200 200",
        "200 200 200 200 200",
    ),
    ("PUT", "/api/packages/{owner}/{project}/{name}/versions/{version}"): ("403 403 403 200 200",)
    * 2,  # the same bytes
    ("GET", "/api/packages/{owner}/{project}/{name}/versions/{version}/file"): (
        "404 404 200 200 200",
        "200 200 200 200 200",
    ),
    ("PUT", "/api/packages/{owner}/{project}/{name}/versions/{version}/yank"): (
        "403 404 403 200 200",
        "403 403 403 200 200",
    ),
    ("DELETE", "/api/packages/{owner}/{project}/{name}/versions/{version}/yank"): (
        "403 404 403 200 200",
        "403 403 403 200 200",
    ),
    ("GET", "/api/addresses/{address}"): ("404 404 200 200 200", "200 200 200 200 200"),
    ("GET", "/api/addresses/{address}/file"): ("404 404 200 200 200", "200 200 200 200 200"),
    ("GET", "/api/addresses/{address}/replications"): ("404 404 200 200 200", "200 200 200 200 200"),
    ("GET", "/api/audit"): "401 403 403 403 200",
}


def test_every_door_is_in_the_table(registry):
    doors = [(door.method, door.path) for door in all_doors(registry)]
    assert len(doors) == len(set(doors))
    assert set(doors) == set(EXPECTED)


@pytest.fixture
def filled(registry, users):
    ann = registry.people.identify(users["ann"].token)
    made = {
        PRIVATE: push(registry, ann, PRIVATE, package(1)),
        PUBLIC: push(registry, ann, PUBLIC, package(2), public=True),
    }
    number = next(item["number"] for item in users["bob"].get("/api/tokens").json["tokens"] if item["user"] == "bob")
    return {name: item.version.address for name, item in made.items()}, number


def asked(user, method, path, which, filled):
    addresses, number = filled
    parts = dict(zip(("owner", "project", "name"), which.split("/"), strict=True))
    if "/members/" in path:
        parts = {"owner": "lab", "user": "bob"}
    full = path.format(**{"user": "bob", "version": "1", "number": number, "address": addresses[which], **parts})
    said = JSON.get(path) or JSON.get(path.rpartition("/")[2]) if method != "GET" else None
    body = package(1 if which == PRIVATE else 2) if path.endswith("{version}") and method == "PUT" else b""
    if path == "/login" and method == "POST":
        return user(method, full, body=b"token=none", headers=OWN_PAGE)
    return user(method, full, json_body=said) if said is not None else user(method, full, body=body)


@pytest.mark.parametrize(("method", "path"), EXPECTED, ids=lambda text: text.replace("/", "|"))
def test_each_may_do_what_the_table_says(method, path, ask, users, filled):
    expected = EXPECTED[method, path]
    for which, row in zip((PRIVATE, PUBLIC), (expected,) if isinstance(expected, str) else expected, strict=False):
        everyone = {"stranger": ask, **users}
        said = {name: asked(everyone[name], method, path, which, filled) for name in WHO}
        assert " ".join(str(answer.status) for answer in said.values()) == row, (which, said["root"].body[:300])
        for answer in said.values():
            if answer.status >= 400:
                assert set(answer.error) == {"status", "what", "found", "allowed", "next"}


def test_what_search_shows_depends_on_who_asks(ask, users, filled):
    found = {name: [item["name"] for item in who.get("/api/search").json["packages"]] for name, who in users.items()}
    assert found == {
        "root": [PRIVATE, PUBLIC], "ann": [PRIVATE, PUBLIC], "bob": [PRIVATE, PUBLIC], "reader": [PRIVATE, PUBLIC],
        "carl": [PUBLIC],
    }  # fmt: skip
    assert [item["name"] for item in ask.get("/api/search").json["packages"]] == [PUBLIC]


@pytest.mark.parametrize("closing", ["expired", "revoked", "closed", "left"])
def test_a_token_that_is_over_is_worth_nothing(closing, registry, users, filled):
    path = f"/api/packages/{PRIVATE}"
    assert users["bob"].get(path).status == 200
    if closing == "expired":
        registry.database.write(lambda rows: rows.all("UPDATE tokens SET expires_at = '2026-01-01T00:00:00Z'"))
    elif closing == "revoked":
        assert users["root"]("DELETE", f"/api/tokens/{filled[1]}").status == 204
    elif closing == "closed":
        assert users["root"]("DELETE", "/api/users/bob").status == 204
    else:
        assert users["ann"]("DELETE", "/api/owners/lab/members/bob").status == 204
    assert users["bob"].get(path).status == (404 if closing == "left" else 401)


def test_a_token_for_one_owner_is_for_no_other(users, filled):
    made = users["ann"].post("/api/tokens", json_body={"scopes": ["read", "push", "admin"], "owners": ["ann"]}).json
    own = users["ann"].with_token(made["token"])
    assert own.get(f"/api/packages/{PRIVATE}").status == 404
    assert own("PUT", f"/api/packages/{PUBLIC}/versions/new", body=package(3)).status == 403
    assert own("PUT", "/api/packages/ann/a/b/versions/new", body=package(3)).status == 201
    wider = [{"scopes": ["yank"]}, {"scopes": ["read"], "owners": ["lab"]}, {"scopes": ["read"], "user": "bob"}]
    assert [own.post("/api/tokens", json_body=item).status for item in wider] == [403] * 3
    again = own.post("/api/tokens", json_body={"scopes": ["read"], "days": 300}).json
    assert (again["owners"], again["expires_at"]) == (["ann"], made["expires_at"])


def test_other_bytes_for_a_version_are_refused_and_the_same_are_the_same_answer(users, filled):
    path = f"/api/packages/{PUBLIC}/versions/1"
    assert users["ann"]("PUT", path, body=package(9)).status == 409
    again = users["bob"]("PUT", path, body=package(2))
    assert (again.status, again.json["new"], again.json["pushed_by"]) == (200, False, "ann")
    assert users["carl"].get(f"{path}/file").body == package(2)


def test_a_browser_logs_in_with_a_token_and_reads(ask, users, filled):
    answer = ask.post("/login", body=f"token={users['ann'].token}".encode(), headers=OWN_PAGE)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert users["ann"].token not in cookie
    session = {"cookie": cookie.partition(";")[0]}
    assert ask.get(f"/api/packages/{PRIVATE}", headers=session).status == 200
    assert ask("PUT", f"/api/packages/{PRIVATE}/versions/new", headers={**session, **OWN_PAGE}).status == 403
    assert ask.post("/logout", headers={**session, **OWN_PAGE}).status == 303
    assert ask.get(f"/api/packages/{PRIVATE}", headers=session).status == 404


def test_a_session_ends_with_the_tokens_of_its_user(ask, users, filled):
    answer = ask.post("/login", body=f"token={users['ann'].token}".encode(), headers=OWN_PAGE)
    session = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert ask.get(f"/api/packages/{PRIVATE}", headers=session).status == 200
    assert users["ann"]("DELETE", f"/api/tokens/{users['ann'].get('/api/me').json['token']}").status == 204
    assert ask.get(f"/api/packages/{PRIVATE}", headers=session).status == 404
    lasting = users["bob"].post("/api/tokens", json_body={"scopes": ["read"], "purpose": " browser"})
    assert lasting.status == 400


@pytest.mark.parametrize("closing", ["revoked", "closed", "left"])
def test_a_push_that_outlasts_its_token_is_refused(closing, registry, users, filled, monkeypatch):
    """A body may take hours: whoever may not push any more when it is there does not."""
    root, bob = users["root"], users["bob"]
    ways = {
        "revoked": f"/api/tokens/{bob.get('/api/me').json['token']}",
        "closed": "/api/users/bob",
        "left": "/api/owners/lab/members/bob",
    }
    received = api._received

    async def slowly(request, write):
        await received(request, write)
        assert (await root._asked("DELETE", ways[closing])).status == 204

    monkeypatch.setattr(api, "_received", slowly)
    answer = bob("PUT", f"/api/packages/{PRIVATE}/versions/new", body=package(7))
    assert answer.status == 403
    assert len(root.get(f"/api/packages/{PRIVATE}").json["versions"]) == 1


def test_a_name_that_no_user_can_have_is_a_plain_error(users):
    assert users["root"].post("/api/tokens", json_body={"scopes": ["read"], "user": "\ud800"}).status == 400


def test_failures_to_log_in_or_set_up_are_limited(ask, users):
    tried = [ask.post("/login", body=b"token=x", headers=OWN_PAGE).status for _ in range(12)]
    assert tried == [403] * 11 + [429]
    right = ask.post("/login", body=f"token={users['ann'].token}".encode(), headers=OWN_PAGE)
    assert right.status == 429
    assert int(right.headers["retry-after"]) > 0
    wrong = ask.with_token("isorun_setup_wrong")
    tried = [wrong.post("/api/setup", json_body={"user": "eve"}, address="10.1.1.1").status for _ in range(12)]
    assert tried == [401] * 10 + [429] * 2
