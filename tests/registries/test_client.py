"""The client trusts no registry: what is not as it was told is refused, and a token goes to its own server alone."""

import hashlib
import http.server
import json
import stat
import threading

import pytest

from isorun.errors import InputError, IsorunError, PackageError, RegistryDenied, RegistryError, RegistryMissing
from isorun.packages.names import Wanted, parse_name, parse_wanted
from isorun.packages.reading import open_package
from isorun.registries import Client, fetched, logins
from registries_made import package

NAME = "lab/cifar10/resnet56"


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ISORUN_REGISTRY", raising=False)


@pytest.fixture
def told(tmp_path):
    """What a registry tells of the package."""
    (tmp_path / "told.isorun").write_bytes(package(1))
    with open_package(tmp_path / "told.isorun") as opened:
        address = opened.address
    return {
        "name": NAME,
        "version": 3,
        "address": address,
        "sha256": hashlib.sha256(package(1)).hexdigest(),
        "bytes": len(package(1)),
        "yanked": None,
        "public": True,
        "tier": "self-reported",
    }


class Lying:
    """A server that answers as it is told to, and keeps what it was asked. answers: path to (status, headers, body)."""

    def __init__(self):
        self.answers, self.asked = {}, []
        lying = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                lying.asked.append((self.path, dict(self.headers)))
                status, headers, body = lying.answers.get(self.path, (404, {}, b"nothing"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def say(self, path, value, status=200):
        self.answers[path] = (status, {}, value if isinstance(value, bytes) else json.dumps(value).encode())

    def offer(self, told, data):
        self.say(f"/api/packages/{NAME}/versions/3", told)
        self.say(f"/api/packages/{NAME}/versions/3/file", data)


@pytest.fixture
def lying():
    server = Lying()
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_what_is_as_it_was_told_is_fetched_once(lying, told):
    lying.offer(told, package(1))
    path = fetched(f"registry:{NAME}@3", registry=lying.url)
    assert path.read_bytes() == package(1)
    assert path.name == f"{told['sha256']}.isorun"
    assert fetched(f"registry:{NAME}@3", registry=lying.url) == path
    assert [item for item, _ in lying.asked].count(f"/api/packages/{NAME}/versions/3/file") == 1
    path.write_bytes(b"damaged in the cache")
    assert fetched(f"registry:{NAME}@3", registry=lying.url).read_bytes() == package(1)
    assert [item.name for item in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "data",
    [b"", package(1)[:-1], package(1) + b"x", package(2), package(1).replace(b"toy", b"tox"), b"\0" * 10**6],
    ids=["nothing", "cut", "longer", "another", "altered", "zeros"],
)
def test_other_bytes_than_were_told_of_are_refused_and_leave_nothing(lying, told, data, tmp_path):
    lying.offer(told, data)
    with pytest.raises(RegistryError, match="did not come as it was told"):
        fetched(f"registry:{NAME}@3", registry=lying.url)
    assert list((tmp_path / "cache").rglob("*.*")) == []


def test_a_file_that_is_no_package_or_has_another_address_is_refused(lying, told, tmp_path):
    junk = b"x" * 100
    lying.offer({**told, "sha256": hashlib.sha256(junk).hexdigest(), "bytes": 100}, junk)
    with pytest.raises(PackageError):
        fetched(f"registry:{NAME}@3", registry=lying.url)
    lying.offer({**told, "address": f"sha256:{'0' * 64}"}, package(1))
    with pytest.raises(RegistryError, match="another address"):
        fetched(f"registry:{NAME}@3", registry=lying.url)
    assert list((tmp_path / "cache").rglob("*.isorun")) == []
    lying.say(f"/api/addresses/sha256:{'0' * 64}", {"versions": [told]})
    with pytest.raises(RegistryError, match="another package than was asked for"):
        fetched(f"registry:sha256:{'0' * 64}", registry=lying.url)


def test_what_goes_on_longer_than_was_told_is_not_read_to_its_end(lying, told):
    lying.offer(told, package(1) + bytes(10**5))
    seen = []
    with pytest.raises(RegistryError, match="did not come as it was told"):
        fetched(f"registry:{NAME}@3", registry=lying.url, observer=lambda done, _: seen.append(done))
    assert all(done <= told["bytes"] for done in seen)


def test_a_package_whose_members_are_not_what_its_manifest_says_is_refused(lying, told):
    damaged = package(1).replace(b"toy", b"tox", 1)
    lying.offer({**told, "sha256": hashlib.sha256(damaged).hexdigest()}, damaged)
    with pytest.raises(PackageError, match="it is not what the manifest says"):
        fetched(f"registry:{NAME}@3", registry=lying.url)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "lab/cifar10/other"}, {"name": "../../etc/passwd"}, {"name": 5}, {"version": 4}, {"version": "3"},
        {"version": True}, {"address": "sha256:../../x"}, {"sha256": "../../../x"}, {"sha256": None}, {"bytes": -1},
        {"bytes": 10**12}, {"bytes": "9"}, {"yanked": 7}, {"yanked": {}},
    ],
)  # fmt: skip
def test_what_no_registry_says_is_refused(lying, told, change):
    lying.offer({**told, **change}, package(1))
    with pytest.raises(RegistryError, match="does not answer as a registry"):
        fetched(f"registry:{NAME}@3", registry=lying.url)
    assert len(lying.asked) == 1  # no file was asked for


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b"7", b"{" * 10**5, b'{"a":' * 10**5, b" " * (9 * 2**20), b"\xff"]
)
def test_an_answer_that_is_none_is_refused(lying, answer):
    lying.say(f"/api/packages/{NAME}/versions/3", answer)
    with pytest.raises(RegistryError, match="does not answer as a registry"):
        Client(lying.url).offered(parse_wanted(f"{NAME}@3"))
    lying.say(f"/api/packages/{NAME}/versions/3", answer, status=500)
    with pytest.raises(RegistryError, match="does not answer as a registry"):
        Client(lying.url).offered(parse_wanted(f"{NAME}@3"))


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("users",), {"users": [{"name": "ann"}]}),
        (("users",), {"users": ["ann"]}),
        (("tokens",), {"tokens": [{"number": 1}]}),
        (("tokens",), {}),
        (("audit",), {"lines": [{"line": 1}]}),
        (("audit",), {"lines": [dict.fromkeys(("at", "user", "action", "subject", "details"), "x") | {"line": 1}]}),
    ],
)
def test_lists_that_no_registry_would_tell_are_refused_and_not_asked_for_for_ever(lying, words, answer, capsys):
    from isorun.cli.main import main

    path = f"/api/{words[0]}?after=0" if words[0] == "audit" else f"/api/{words[0]}"
    for asked in (path, "/api/audit?after=1"):
        lying.say(asked, answer)
    assert main(["registry", *words, "--registry", lying.url]) == 1
    error = capsys.readouterr().err
    assert "does not answer as a registry" in error or "the same lines of its log again" in error


def test_an_answer_that_is_cut_is_a_plain_error_and_words_stay_on_their_line(lying):
    lying.answers["/api/me"] = (200, {"Transfer-Encoding": "chunked", "Content-Length": "9"}, b"zz\r\n{}")
    with pytest.raises(RegistryError, match="does not answer as a registry"):
        Client(lying.url).me()
    lying.say("/api/me", {"error": {"what": "no", "next": "isorun search\nrm -rf \x1b[2J"}}, status=404)
    with pytest.raises(RegistryMissing) as raised:
        Client(lying.url).me()
    assert "\n" not in raised.value.hint
    assert "\x1b" not in raised.value.hint


def test_no_redirect_is_followed_and_no_token_goes_elsewhere(lying, told):
    other = Lying()
    try:
        other.offer(told, package(1))
        path = f"/api/packages/{NAME}/versions/3"
        for status in (301, 302, 303, 307, 308):
            lying.answers[path] = (status, {"Location": f"{other.url}{path}"}, b"")
            with pytest.raises(RegistryError, match="does not answer by itself"):
                Client(lying.url, "isorun_secret").offered(parse_wanted(f"{NAME}@3"))
        assert other.asked == []
        assert all(headers["Authorization"] == "Bearer isorun_secret" for _, headers in lying.asked)
        logins.remember(lying.url, "isorun_secret")
        Client(other.url).offered(parse_wanted(f"{NAME}@3"))
        assert all("Authorization" not in headers for _, headers in other.asked)
    finally:
        other.server.shutdown()
        other.server.server_close()


def test_what_a_registry_refuses_is_told_in_its_words(lying):
    said = {"error": {"status": 404, "what": "there is no such", "found": "x", "allowed": "y", "next": "isorun search"}}
    lying.say("/api/me", said, status=404)
    with pytest.raises(RegistryMissing) as raised:
        Client(lying.url).me()
    assert (raised.value.found, raised.value.hint) == ("x", "isorun search")
    with pytest.raises(RegistryError, match="cannot be reached"):
        Client("http://127.0.0.1:9").me()


def test_a_yanked_version_is_told_of(lying, told, capsys):
    lying.offer({**told, "yanked": {"at": "", "by": "ann", "reason": "wrong \x1b[2Jdata"}}, package(1))
    fetched(f"registry:{NAME}@3", registry=lying.url)
    said = capsys.readouterr().err
    assert "was yanked: wrong" in said
    assert "\x1b" not in said
    lying.offer({**told, "yanked": {"at": "", "by": "ann", "reason": ""}}, package(1))
    fetched(f"registry:{NAME}@3", registry=lying.url)
    assert "was yanked: without a reason" in capsys.readouterr().err


def test_tokens_are_kept_for_their_owner_alone(tmp_path):
    path = logins.remember("HTTPS://Registry.Lab.org:443/", "isorun_secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert logins.known() == ("https://registry.lab.org",)
    logins.remember("http://127.0.0.1:8008", "isorun_other")
    assert logins.default_registry() == "http://127.0.0.1:8008"
    logins.forget("https://registry.lab.org")
    assert b"isorun_secret" not in path.read_bytes()
    with pytest.raises(InputError, match="not logged in"):
        logins.forget("https://registry.lab.org")
    assert logins.chosen_registry() == "http://127.0.0.1:8008"
    path.write_text("{}")
    with pytest.raises(InputError, match="cannot be read"):
        logins.known()


def test_no_token_goes_unencrypted_to_another_machine():
    with pytest.raises(RegistryDenied, match="not encrypted"):
        Client("http://registry.lab.org", "isorun_secret")
    Client("http://registry.lab.org")
    Client("http://localhost:1", "isorun_secret")
    Client("http://[::1]:1", "isorun_secret")
    Client("http://registry.lab.org", "isorun_secret", plain_http=True)


@pytest.mark.parametrize(
    "url",
    ["", "lab.org", "ftp://lab.org", "https://", "https://ann:secret@lab.org", "https://lab.org/x", "https://lab.org?x=1",
     "https://lab.org:x", "file:///etc/passwd", "https://lab.org#x", "javascript:alert(1)", "https://[::1"],
)  # fmt: skip
def test_what_is_no_address_of_a_registry_is_refused_without_its_password(url):
    with pytest.raises(InputError) as raised:
        Client(url)
    assert "secret" not in raised.value.message()


def test_which_registry_is_meant(monkeypatch):
    with pytest.raises(InputError, match="not said"):
        logins.chosen_registry()
    monkeypatch.setenv("ISORUN_REGISTRY", "https://a.org")
    assert logins.chosen_registry() == "https://a.org"
    assert logins.chosen_registry("https://b.org") == "https://b.org"


@pytest.mark.parametrize(
    "text",
    ["", "a", "a/b", "a/b/c/d", "A/b/c", "a/b/c@", "a/b/c@0", "a/b/c@x", "a/b/c@-1", "a/b/c@1@2", "../b/c", "a//c",
     "a/b/c@01", "a/b/..", "a /b/c", "a/b/c\n", "é/b/c", "a/b/-c", "sha256:abc", f"sha256:{0:064}x",
     "a/b/c@9999999999"],
)  # fmt: skip
def test_what_is_no_name_is_refused(text):
    with pytest.raises(IsorunError):
        parse_wanted(f"registry:{text}")


def test_names_are_read_as_they_are_written():
    assert parse_wanted("registry:lab/cifar10/resnet-56.v_2@12") == Wanted(parse_name("lab/cifar10/resnet-56.v_2"), 12)
    assert str(parse_wanted("lab/a/b@3")) == "lab/a/b@3"
    assert str(parse_wanted(f"registry:sha256:{'0' * 64}")) == f"sha256:{'0' * 64}"


@pytest.mark.parametrize("lie", [{"sha256": "0" * 64}, {"address": f"sha256:{'0' * 64}"}, {"name": "lab/other/net"}])
@pytest.mark.parametrize("known", [False, True])
def test_a_registry_that_says_of_another_package_that_it_was_pushed_is_not_believed(
    told, tmp_path, monkeypatch, lie, known
):
    client = Client("http://127.0.0.1:9", "token")
    answers = {"POST": {"known": told | lie if known else None}, "PUT": {**told, **lie, "new": True}}
    monkeypatch.setattr(Client, "ask", lambda _, method, *__, **___: answers[method])
    with pytest.raises(RegistryError, match="does not answer as a registry"):
        client.push(tmp_path / "told.isorun", Wanted(parse_name(NAME)))


@pytest.mark.parametrize("answer", [{}, {"token": "", "user": "ann", "expires_at": "x"}, {"token": 5, "user": "ann"}])
def test_an_answer_without_a_token_is_told_as_none(answer, monkeypatch, capsys):
    from isorun.cli.main import main

    monkeypatch.setenv("ISORUN_REGISTRY", "http://127.0.0.1:9")
    monkeypatch.setattr(Client, "ask", lambda *_, **__: answer)
    assert main(["registry", "token"]) == 1
    told = capsys.readouterr()
    assert "no token" in told.err
    assert "shown this once" not in told.out


@pytest.mark.parametrize("status", [200, 409])
def test_an_answer_of_millions_of_values_is_refused_before_anything_is_made_of_it(lying, monkeypatch, status):
    many = b'{"packages":[%s]}' % b",".join([b"{}"] * 2_000_000)
    lying.answers["/api/search?words=&most=20"] = (status, {}, many)
    read = []
    monkeypatch.setattr("isorun.registries.json.loads", lambda data: read.append(len(data)) or {})
    with pytest.raises(RegistryError, match="does not answer as a registry"):
        Client(lying.url, "").search()
    assert sum(read) < 10
