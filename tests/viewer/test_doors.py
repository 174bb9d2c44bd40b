"""Tests access to the viewer: the token, then the cookie; hosts and origins; and the command on a terminal."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.report.render.html.environment import visible
from memarena.viewer.cache_file import cache_path, remove_old
from memarena.viewer.errors import ViewerError
from memarena.viewer.security import Door, kept_token
from memarena.viewer.templating import marked_pieces
from typer.testing import CliRunner

from .conftest import Site

PAGES = ("/", "/static/viewer.css", "/nothing")


@pytest.mark.parametrize("path", PAGES)
def test_nobody_is_let_in_without_the_token(site: Site, path: str) -> None:
    for headers in (
        {"Cookie": ""},
        {"Cookie": f"{site.door.cookie}=wrong"},
        {"Cookie": "memarena_1=" + site.door.token},
    ):
        assert site.ask(path, headers).status == 403
    assert site.ask(f"{path}?token=wrong").status == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(site: Site) -> None:
    answer = site.ask(f"/?token={site.door.token}&a=1", {"Cookie": ""})
    assert (answer.status, answer.headers["Location"]) == (303, "/?a=1")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{site.door.cookie}={site.door.token};")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


def test_a_token_file_keeps_the_token_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = kept_token(file)
    assert (kept_token(file), stat.S_IMODE(file.stat().st_mode)) == (token, 0o600)
    assert Door.new("127.0.0.1", 80, token).knows(token)
    assert not Door.new("127.0.0.1", 80).knows(token)
    for mode, text, why in ((0o644, token, "other users may read it"), (0o600, "short", "expected one line")):
        file.write_text(text)
        file.chmod(mode)
        with pytest.raises(ViewerError, match=why):
            kept_token(file)
    with pytest.raises(ViewerError, match="cannot be made"):
        kept_token(tmp_path / "none" / "token")


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/"])
def test_nobody_is_sent_to_another_host(site: Site, path: str) -> None:
    answer = site.ask(f"{path}?token={site.door.token}", {"Cookie": ""})
    assert (answer.status, "Location" in answer.headers) == (404, False)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "localhost.evil.example:{port}", "", "[::1", "x:y"])
def test_a_name_that_was_pointed_here_is_refused(site: Site, host: str) -> None:
    assert site.ask("/", {"Host": host.format(port=site.door.port)}).status == 421


def test_other_sites_are_refused(site: Site) -> None:
    port = site.door.port
    assert site.ask("/", {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}).status == 200
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"):
        assert site.ask("/", {"Origin": origin}).status == 403
    assert site.ask("/", method="POST").status == 403


@pytest.mark.parametrize("path", [*PAGES, "run", "questions", "charts"])
def test_every_answer_forbids_scripts_but_ours_and_frames(site: Site, path: str) -> None:
    page_path = path if path.startswith("/") else site.run("lab", "" if path == "run" else f"/{path}")
    policy = site.page(page_path).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_pages_have_no_inline_script_or_style_and_name_no_other_host(site: Site) -> None:
    for path in ("/", site.run("lab"), site.run("lab", "/questions"), site.run("lab", "/charts")):
        text = site.page(path).text
        assert not re.search(r"<script(?! src=\"/static/)|<style|<[a-z][^>]*\s(?:style|on\w+)=|https?://", text)


def test_a_server_on_every_address_takes_addresses_but_no_other_names() -> None:
    door = Door("0.0.0.0", 80, "t")
    assert door.takes_host("192.168.0.7:80")
    assert door.takes_host("192.168.0.7")
    assert not door.takes_host("evil.example:80")
    assert not Door("127.0.0.1", 80, "t").takes_host("192.168.0.7:80")


def test_texts_are_spelled_out_where_they_hide() -> None:
    assert visible("a\x00b\x7fc\u200bd\ud800e\r\nf\tg") == "a␀b␡c[U+200B]d[U+D800]e\nf\tg"
    assert visible("Zoë 山 👩‍🚀 é") == "Zoë 山 👩‍🚀 é"


def test_passages_are_marked_once_where_they_overlap() -> None:
    pieces = marked_pieces('say "one two" three', ["one two", "two", '"one'])
    assert "".join(p.text for p in pieces) == 'say "one two" three'
    assert "".join(p.text for p in pieces if p.marked) == '"one two'
    assert [p.marked for p in marked_pieces("", ["x"])] == [False]


# ------------------------------------------------------------------ cache and command


def test_a_cache_is_used_again_kept_from_others_and_removed_when_old(site: Site, lab: Path) -> None:
    site.page(site.run("lab"))
    path = cache_path(site.caches, lab.resolve(), "value")
    assert path.stat().st_mode & 0o077 == 0
    inode = path.stat().st_ino
    site.page(site.run("lab"))
    assert path.stat().st_ino == inode
    remove_old(site.caches, path.stat().st_mtime + 29 * 86_400)
    assert path.exists()
    remove_old(site.caches, path.stat().st_mtime + 31 * 86_400)
    assert not path.exists()
    assert site.page(site.run("lab")).status == 200


def test_a_damaged_cache_is_made_anew(site: Site, lab: Path) -> None:
    site.page(site.run("lab"))
    path = cache_path(site.caches, lab.resolve(), "value")
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (path.stat().st_size - 8192))
    for _ in range(3):
        answer = site.page(site.run("lab", "/questions"))
        if answer.status == 200:
            break
    assert answer.status == 200


def test_a_folder_without_a_run_is_one_line(tmp_path: Path) -> None:
    for folder, words in ((tmp_path, "no run here"), (tmp_path / "none", "no such folder")):
        result = CliRunner().invoke(app, ["view", str(folder)])
        assert words in str(result.exception)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_its_address_and_ends_when_told_to(
    lab: Path, tmp_path: Path, ending: signal.Signals
) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "caches")}
    command = [sys.executable, "-m", "memarena", "view", str(lab)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        request = urllib.request.Request(address, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(request, timeout=10):
            pass
        refused.value.close()
        assert refused.value.code == 421
        process.send_signal(ending)
        assert process.wait(20) == 0
    cache_folder = tmp_path / "caches" / "memarena" / "viewer"
    assert cache_folder.stat().st_mode & 0o077 == 0
