"""Tests backends/manifests.py: a backend is chosen by name, address or path; errors are one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.execution.backends.manifests import AddressedBackend, LaunchableBackend, choose_backend, load_manifest
from memarena.execution.errors import RunError

MANIFEST = """
schema = 1
[[backend]]
name = "mine"
kind = "competitor"
command = ["mine", "--address-file", "{address_file}"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "backend.toml").write_text(MANIFEST)
    monkeypatch.setenv("MEMARENA_BACKENDS", str(tmp_path))
    return tmp_path


def test_a_name_is_looked_up_in_the_folders_of_the_environment(folder: Path) -> None:
    backend = choose_backend("mine")
    assert isinstance(backend, LaunchableBackend)
    assert backend.folder == folder / "mine"
    assert not backend.diagnostic


@pytest.mark.parametrize("form", ["mine", "mine/backend.toml"])
def test_a_manifest_can_be_given_by_path(folder: Path, form: str) -> None:
    assert choose_backend(f"{folder}/{form}").name == "mine"


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("127.0.0.1:50051", "127.0.0.1:50051", "127.0.0.1:50051"),
        ("mine=localhost:1", "mine", "localhost:1"),
        ("mine=[::1]:50051", "mine", "[::1]:50051"),
    ],
)
def test_an_address_is_used_unchanged(text: str, name: str, address: str) -> None:
    assert choose_backend(text) == AddressedBackend(name=name, address=address)


def test_the_backends_of_this_checkout_are_known() -> None:
    assert [choose_backend(name).name for name in ("bm25", "vanilla", "oracle")] == ["bm25", "vanilla", "oracle"]


def test_an_unknown_name_lists_the_known_ones(folder: Path) -> None:
    with pytest.raises(RunError, match=r"--backend nobody: no backend of this name \(known: .*mine"):
        choose_backend("nobody")


@pytest.mark.parametrize("text", ["", "no such name", "host:port", "a=b", "127.0.0.1:99999", "/nowhere/backend.toml"])
def test_text_that_is_no_name_address_or_path_is_refused(text: str) -> None:
    with pytest.raises(RunError, match="--backend"):
        choose_backend(text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("schema = 1", "schema = 2"), "schema"),
        (('kind = "competitor"', 'kind = "friend"'), "backend.0.kind"),
        (('name = "mine"', 'name = "Not A Name"'), "backend.0.name"),
        (("command = [", "commands = ["), "backend.0.command"),
        (("schema = 1", "schema = "), "not valid TOML"),
        (
            ("schema = 1", 'schema = 1\n[[backend]]\nname = "mine"\nkind = "competitor"\ncommand = ["x"]'),
            "mine is given",
        ),
        (("command", "whole_corpus = true\ncommand"), "backend.0: whole_corpus: only a diagnostic"),
        (("command", "evidence_sessions = true\ncommand"), "backend.0: evidence_sessions: only a diagnostic"),
        (
            ("command", 'conformance = [{ name = "a" }, { name = "a" }]\ncommand'),
            "backend.0: conformance: the name a is",
        ),
        (("schema = 1", "schema = 1\n[environment]"), "environment.requirements: missing"),
        (
            ("schema = 1", 'schema = 1\n[environment]\nrequirements = "r"\npython = "3.11"'),
            "environment.python: '3.11' is no version specifier",
        ),
        (
            ("schema = 1", 'schema = 1\n[environment]\nrequirements = "r"\npip = "x"'),
            "environment.pip: there is no such setting",
        ),
        (("command", 'conformance = [{ name = "a", settings = { U = "{url}" } }]\ncommand'), "and there is none"),
    ],
)
def test_a_bad_manifest_names_file_and_field(folder: Path, change: tuple[str, str], reason: str) -> None:
    path = folder / "mine" / "backend.toml"
    path.write_text(MANIFEST.replace(*change, 1))
    with pytest.raises(RunError, match=reason) as caught:
        load_manifest(path)
    assert str(path) in str(caught.value)
