"""Tests packs/drafting.py: what is kept of the source pack, and which of a model's proposals are accepted."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from memarena_masim.cli import main

from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer


def masim(*arguments: str | Path) -> int:
    """Run the command in this process; return its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr("sys.argv", ["masim", *map(str, arguments)])
        main()
    return int(stop.value.code or 0)


def letters(number: int) -> str:
    """Return a word that is in no pack, by number."""
    return "qu" + "".join("aeioukmnrt"[int(digit)] for digit in str(number)) + "x"


def scripted(body: Body) -> Script:
    """Return a reply with one acceptable proposal and several that are not; the first reply is not JSON."""
    prompt, word = body["messages"][-1]["content"], letters(body.number)
    reply: dict[str, Any]
    if "Propose another scene" in prompt:
        reply = json.loads(prompt.split("as JSON:\n")[1].split("\nPropose")[0])
        if '"films"' not in prompt:
            for beat in reply["beats"]:
                beat["tell"] = [f"The {word} of {letters(len(line))} came again." for line in beat["tell"]]
    elif "first names" in prompt or "last names" in prompt:
        reply = {"lines": [word.capitalize(), "maya", "Maya", "Derek", "Chen"]}
    elif "sentences for the same kind" in prompt:
        line = f"as far as {word} goes, $I (have/has) $item for $v."
        reply = {
            "lines": [
                line,
                "$I had $item for $v, 3 times over",
                "$item has it all",
                "$item has all of $v",
                "{$item: $v so far",
            ]
        }
    else:
        samovar = {"name": f"the {word} samovar", "other_name": f"the samovar of {word}"}
        good = {**samovar, "description": f"hot {word} vessel"}
        reply = {"things": [good, {**good, "name": "The Samovar"}, {**samovar, "description": f"a {word} samovar"}]}
    return Script("not JSON" if not body.number else json.dumps(reply))


def test_a_draft_without_a_model_is_half_of_its_source_and_says_what_to_write(tmp_path: Path) -> None:
    """The same seed keeps the same half, which passes every check."""
    for name in ("one/draft", "two/draft"):
        assert masim("pack", "new", tmp_path / name, "--seed", "7") == 0
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(files) > 50
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files)
    price = tomllib.loads((tmp_path / "one/draft/facts/details.toml").read_text())["price"]
    notes = (tmp_path / "one/draft/WRITE.md").read_text()
    assert re.search(rf"price\.items`: {len(price['items'])} of the source's to replace, [1-9]\d* to add", notes)
    assert masim("pack", "check", tmp_path / "one/draft") == 0
    assert masim("pack", "new", tmp_path / "one/draft") == 2


def test_checks_decide_on_what_a_model_proposes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Accepted proposals are in the draft, refused ones are listed with the reason; the draft passes every check."""
    folder = tmp_path / "draft"
    with ModelServer(scripted) as server:
        assert masim("pack", "new", folder, "--seed", "7", "--llm", server.base_url, "--model", "scripted") == 0
        assert {body["response_format"]["type"] for body in server.asked} == {"json_schema"}
    refused = (folder / "REFUSED.md").read_text()
    accepted, proposed = map(int, re.findall(r"(\d+) of (\d+) proposals", refused)[0])
    assert f"{accepted} of {proposed} proposals accepted" in capsys.readouterr().out
    assert proposed - accepted == refused.count("\n- ")
    for line in (
        "things, price: `not JSON`: of another form",
        "`The Samovar | the samovar of ",
        ": has a capital",
        ": its description repeats it",
        "for $v, 3 times over`: has a number or a day",
        "`$item has it all`: lacks $v",
        "`$item has all of $v`: lacks $I or $my",
        "`{$item: $v so far`: proposal: missing '}'",
        "people, first_names: `maya`: is no name of one word",
        "people, first_names: `Maya`: is in the source pack",
        "scenes, films: `",
    ):
        assert line in refused, line
    details = tomllib.loads((folder / "facts/details.toml").read_text())
    items = (folder / "questions/items.txt").read_text()
    samovars = [item for row in details.values() for item in row["items"] if "samovar" in item]
    assert len(samovars) > 20
    assert all(f" | {item} | the samovar of " in items for item in samovars)
    assert any(line.startswith("as far as qu") and not line.endswith(".") for line in details["price"]["say"])
    assert "hiking_new" in (folder / "scenes/hiking.toml").read_text()
    assert "films_new" not in (folder / "scenes/films.toml").read_text()
    assert masim("pack", "check", folder) == 0


def test_nothing_is_left_of_a_draft_whose_endpoint_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda body: Script(status=401)) as server:
        assert masim("pack", "new", tmp_path / "draft", "--llm", server.base_url, "--model", "scripted") != 0
    assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "draft").exists()
