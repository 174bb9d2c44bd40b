"""Tests that README's table and picture come from a demonstration, and that the script changes nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.readme_demo import BEGIN, END, with_screen

ROOT = Path(__file__).parents[2]


def test_the_readme_shows_a_first_screen_and_its_picture() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    screen = readme.partition(BEGIN)[2].partition(END)[0].strip().splitlines()[1:-1]
    assert 20 < len(screen) <= 52
    assert max(map(len, screen)) <= 100
    memories = ("oracle", "bm25", "vanilla", "memsearch")
    assert [sum(line.startswith(name) for line in screen) for name in memories] == [2, 2, 2, 1]
    drawing = ElementTree.parse(ROOT / "docs" / "demo.svg").getroot()
    picture_text = "".join(drawing.itertext())
    for line in screen:
        name, count_match = (line.split(" ")[0], re.search(r" (\d+) ", line))
        if name in memories and count_match and int(count_match[1]) > 100:
            _, right = re.findall(r" ([\d.]+) \[", line)  # after answerable
            assert right in picture_text, f"{name}: the picture is of another run than the table"


def test_the_screen_is_replaced_and_the_rest_kept() -> None:
    before = f"a\n{BEGIN}\nold\n{END}\nb\n"
    after = with_screen(before, "new \\1 screen\n")
    assert after == f"a\n{BEGIN}\n```text\nnew \\1 screen\n```\n{END}\nb\n"
    assert with_screen(after, "new \\1 screen\n") == after
    with pytest.raises(SystemExit, match="found 0"):
        with_screen("a", "new")
