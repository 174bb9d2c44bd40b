"""Tests pack.py and packs/check.py: the hash, hostile packs, names that make a gold ambiguous, worlds of a pack."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from memarena_dataset.validate import validate
from memarena_masim.cli import main
from memarena_masim.config import PackRef, preset, sized
from memarena_masim.errors import MasimError
from memarena_masim.output.generate import generate
from memarena_masim.pack import MAX_FILE_BYTES, PUBLIC, open_pack, public_pack

Run = Callable[..., tuple[int, str, str]]
DETAILS = "facts/details.toml"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``masim`` in this process; return exit code, stdout and stderr."""

    def masim(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["masim", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        sys.stdout.flush()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return masim


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A copy of the public pack under another name."""
    folder = tmp_path / "pack"
    shutil.copytree(PUBLIC, folder)
    swap(folder, "pack.toml", "memarena-public", "another")
    return folder


def swap(folder: Path, file: str, old: str, new: str) -> None:
    """Replace the first ``old`` by ``new``."""
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text, (file, old)
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")


def _link(folder: Path) -> None:
    (folder / DETAILS).unlink()
    (folder / DETAILS).symlink_to(PUBLIC / DETAILS)


def _huge(folder: Path) -> None:
    with (folder / DETAILS).open("wb") as file:
        file.truncate(1 << 30)


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda folder: (folder / DETAILS).write_bytes(change((folder / DETAILS).read_bytes()))


def _swap(file: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda folder: swap(folder, file, old, new)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (_link, "facts/details.toml: is a link"),
    "link to a folder": (lambda folder: (folder / "more").symlink_to("/usr"), "more: is a link"),
    "pipe": (lambda folder: os.mkfifo(folder / "scenes" / "a.toml"), "a.toml: is no plain file"),
    "gigabyte": (_huge, f"1,073,741,824 bytes; at most {MAX_FILE_BYTES:,}"),
    "binary": (_bytes(lambda data: data[:200] + b"\xff\xfe" + data[200:]), "facts/details.toml:2: no UTF-8"),
    "NUL": (_bytes(lambda data: data + b"\0"), "a NUL byte"),
    "CRLF": (_bytes(lambda data: data.replace(b"\n", b"\r\n")), "facts/details.toml:1: a carriage return"),
    "BOM": (_bytes(lambda data: b"\xef\xbb\xbf" + data), "facts/details.toml:1: begins with a byte order mark"),
    "missing": (lambda folder: (folder / DETAILS).unlink(), "facts/details.toml: missing"),
    "stranger": (lambda folder: (folder / "run.py").write_text("print()"), "run.py: no file of a pack"),
    "no TOML": (_swap(DETAILS, "[price]", "[price"), "facts/details.toml: no TOML"),
    "unknown key": (
        _swap(DETAILS, "[price]\n", "[price]\ncolor = 1\n"),
        "details.toml:8: price.color: unknown key",
    ),
    "wrong type": (_swap(DETAILS, 'type = "amount"', "type = 5"), ": price.type: input should be a valid string"),
    "missing key": (_swap(DETAILS, 'plain = "$I paid $v for $item"\n', ""), ":7: price.plain: is missing"),
    "manifest": (_swap("pack.toml", "licence", "license"), "pack.toml: licence: missing"),
    "announced": (
        _swap("pack.toml", "version", f'sha256 = "{"0" * 64}"\nversion'),
        f"pack.toml: sha256: {'0' * 64}, but the files have",
    ),
    "bad range": (
        _swap(DETAILS, '"75..298 step 1"', '"298..75 step 1"'),
        "details.toml:11: price.values: a list",
    ),
    "grammar": (_swap("facts/levels.bank", "{that|this}", "{that|this"), "levels.bank:4: missing '}'"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_pack_that_cannot_be_used_is_one_line_and_exit_code_2(name: str, pack: Path, run: Run) -> None:
    """With the file, the line if there is one, and the expectation."""
    spoil, message = HOSTILE[name]
    spoil(pack)
    code, out, err = run("pack", "check", pack)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert message in err, err


def test_the_hash_covers_the_files_and_a_pack_that_changed_is_refused(pack: Path, run: Run) -> None:
    """The hash does not cover the manifest and notes for people."""
    files = sorted(
        path.relative_to(pack).as_posix()
        for path in pack.rglob("*")
        if path.is_file() and path.suffix != ".md" and path.name != "pack.toml"
    )
    lines = "".join(f"{hashlib.sha256((pack / file).read_bytes()).hexdigest()}  {file}\n" for file in files)
    sha256 = hashlib.sha256(lines.encode()).hexdigest()
    (pack / "NOTES.md").write_text("notes")
    assert run("pack", "hash", pack, "--write") == (0, f"{sha256}\n", "")
    assert open_pack(pack).manifest.sha256 == sha256 == public_pack().sha256
    assert run("pack", "hash", "--write")[0] == 2
    swap(pack, "world/people.toml", '"Maya"', '"Mavis"')
    code, _, err = run("generate", "--pack", pack, "--out", pack.parent / "out")
    assert (code, "the files that were announced are expected" in err) == (2, True)


def test_names_and_frames_that_make_a_gold_ambiguous_are_listed_by_line(pack: Path, run: Run) -> None:
    """Names that fit two things or are too general, frames without their slots. ``generate`` refuses such a pack."""
    swap(pack, "questions/items.txt", "| the coffee mill ;", "| the garden bench ; the bench ;")
    swap(pack, "questions/items.txt", "| the lamp for the desk ;", "| the desk ;")
    swap(pack, "questions/items.txt", "| the mattress |", "| the mattress ; the tall desk lamp |")
    swap(pack, DETAILS, "$I paid $v for $item{", "$I paid $v for it{")
    swap(pack, DETAILS, "$item cost $me $v{", "$item cost $me dearly{")
    swap(pack, "questions/details.toml", '"How much did $I pay for $it?"', '"How much did $I pay?"')
    # The file holds this text with escapes, so that no line can be named.
    swap(pack, "questions/details.toml", '"what $I paid for $it"', r'"what \"all that\" cost"')
    swap(pack, "questions/finds.toml", 'harbour = "at the harbour"', 'harbour = "in the village"')
    value = tomllib.loads((pack / DETAILS).read_text(encoding="utf-8"))["pet_name"]["values"][0]
    swap(pack, "questions/items.txt", "pet_name | parrot | pet parrot", f"pet_name | parrot | {value} the parrot")
    code, out, _ = run("pack", "check", pack, "--against", PUBLIC)
    assert code == 1
    for line in (
        "items.txt:5: price: 'the bench' is wider than 'the coffee grinder': it fits 'the garden bench' too",
        "items.txt:12: price: 'the garden bench' is a name of 'the coffee grinder' and of 'the garden bench'",
        "details.toml:7: say.price.own, line 1 of it: lacks $item",
        "details.toml:7: say.price.told, line 2 of it: lacks $v",
        "questions/details.toml:9: price: lacks $it or $own: 'How much did $I pay?'",
        "questions/details.toml: price: lacks $it or $own: 'what \"all that\" cost'",
        "'the flea market in the village' is a name of 'the harbour flea market' and of 'the village flea market'",
        f"pet_name: '{value} the parrot' holds the value '{value}'",
    ):
        assert line in out, line
    assert re.search(r"things: [\d,]+ of [\d,]+ \(99\.\d%\) are in memarena-public\n", out)
    assert re.search(r"scenes: (\d+) of \1 \(100\.0%\) are in memarena-public\n", out)
    assert run("pack", "check")[1].startswith("memarena-public 1: 0 faults, 0 to read, ")
    assert run("generate", "--pack", pack, "--out", pack.parent / "out")[0] == 2
    assert not (pack.parent / "out").exists()


def test_names_that_a_second_reader_accepted_are_counted_and_stay_true(pack: Path, run: Run) -> None:
    """Without their line they are to be read again; a line without such a name is a fault."""
    names_file = "questions/names-read.txt"
    accepted = sum(not line.startswith("#") for line in (pack / names_file).read_text().splitlines())
    assert accepted > 40
    code, out, _ = run("pack", "check", pack)
    assert code == 0
    assert out.endswith(f"another 1: 0 faults, 0 to read, {accepted} read\n")
    swap(pack, names_file, "pet_name | parrot | pet parrot", "pet_name | parrot | grey parrot")
    code, out, _ = run("pack", "check", pack)
    assert (code, f"{accepted} read") == (1, out.rstrip().rpartition(", ")[2])
    assert "names-read.txt:6: pet_name | parrot | grey parrot: no other name with more words than its thing\n" in out
    assert "to read: " in out
    assert "items.txt:68: pet_name: 'pet parrot' says more than 'parrot': pet\n" in out
    swap(pack, names_file, "used and second-hand are the same; no other camera", "")
    code, _, err = run("pack", "check", pack)
    assert (code, err.count("\n")) == (2, 1)
    assert "price | the used camera | the second-hand camera: what it was checked against is expected" in err
    (pack / names_file).unlink()
    assert run("pack", "check", pack)[1].endswith(f"another 1: 0 faults, {accepted} to read, 0 read\n")


def test_a_world_records_its_pack(pack: Path, tmp_path: Path, tiny_world: Path) -> None:
    """A pack with the same words and another name gives the same talk; ``validate`` reports a wrong hash."""

    ref = PackRef.of(open_pack(pack), str(pack))
    config = sized(preset("tiny", 102), pack=ref)
    assert pickle.loads(pickle.dumps(config)).words == config.words
    generate(config, tmp_path / "copy")
    same = [tmp_path / "copy" / "corpus_sessions.jsonl", tiny_world / "corpus_sessions.jsonl"]
    assert same[0].read_bytes() == same[1].read_bytes()
    with pytest.raises(MasimError, match="files have changed meanwhile"):
        generate(sized(preset("tiny", 5), pack=ref.model_copy(update={"sha256": "0" * 64})), tmp_path / "stale")
    report = tmp_path / "copy" / "pipeline_report.json"
    rows = json.loads(report.read_text())
    assert rows["configuration"]["pack"] == {"name": "another", "version": "1", "sha256": public_pack().sha256}
    assert not validate(tmp_path / "copy").errors
    rows["banks"][DETAILS] = "0" * 64
    report.write_text(json.dumps(rows))
    (error,) = validate(tmp_path / "copy").errors
    assert str(error.problem).startswith("pipeline_report.json: configuration.pack.sha256: ")
