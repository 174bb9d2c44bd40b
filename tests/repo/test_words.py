"""Tests scripts/words.py: every use of a word that is out is reported, and allowed uses are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import words

MODULE = '''"""Opens anew what nobody closed.

A line below it, with `beside` as code, and ``path`` beside ``file``.
"""

import tokenize as place


class LifeFound:
    """One."""

    told: int = 0


def settle(paths, *, values_given):  # `beside`
    items_found = [one for one in paths]
    for one_path in items_found:
        print("found beside it", "beside", r"^(?:in|beside) it")
    with open(items_found[0]) as said:
        return said
    place = 2
    taken = 3  # words: a name of the file format
'''
DOCUMENT = """# Page

Put it beside the file,
in a folder of its
own.
> I live beside the sea.

```
memarena latency --beside NAME
```
A table `beside` this, [link](#beside).
"""


def _lines(root: Path, *paths: str) -> list[tuple[int, str]]:
    return [(hit.line, hit.text) for hit in words.hits(root, paths, words.words())]


def test_names_and_prose_of_a_module(tmp_path: Path) -> None:
    """Names by their last part, docstrings, comments and messages; not a part before the last, nor code in prose."""
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    assert _lines(tmp_path, "module.py") == [
        (1, "anew"),
        (1, "nobody"),
        (3, "beside"),
        (6, "place"),
        (9, "Life_Found"),
        (12, "told"),
        (15, "settle"),
        (15, "values_given"),
        (16, "items_found"),
        (16, "one"),
        (18, "beside"),
        (19, "said"),
        (21, "place"),
    ]


def test_a_word_that_is_out_in_some_folders(tmp_path: Path) -> None:
    """A name may be held to a word in the folders that have been cleaned of it, and in no other."""
    for folder in ("bench", "scripts"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text("rows_kept = 1\nis_kept_open = True\n", encoding="utf-8")
    assert _lines(tmp_path, "bench", "scripts") == [(1, "rows_kept")]


def test_strings_of_texts_for_people_are_not_looked_at(tmp_path: Path) -> None:
    """Of the simulator and tests, strings are texts of a world: names and comments count all the same."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "module.py").write_text('found = "sits beside it"  # beside\n', encoding="utf-8")
    assert _lines(tmp_path, "tests") == [(1, "beside"), (1, "found")]


def test_prose_of_a_document(tmp_path: Path) -> None:
    """Sentences over line ends; not code, targets of links and quotations."""
    (tmp_path / "page.md").write_text(DOCUMENT, encoding="utf-8")
    assert _lines(tmp_path, "page.md") == [(3, "beside"), (4, "of its\nown")]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hit is printed with what to write and exits with 1; a missing folder with 2; the table is in the glossary."""
    (tmp_path / "module.py").write_text("found = 1\n", encoding="utf-8")
    assert words.main(["--root", str(tmp_path), "module.py"]) == 1
    assert capsys.readouterr().out.startswith("module.py:1: found → what it holds")
    assert words.main(["--root", str(tmp_path), "elsewhere"]) == 2
    assert "elsewhere: no such file or folder" in capsys.readouterr().err
    (tmp_path / "docs").mkdir()
    rows = [word.row for word in words.words()]
    (tmp_path / words.GLOSSARY).write_text("\n".join(rows[1:]), encoding="utf-8")
    assert words.missing_rows(tmp_path, words.words()) == [
        f"docs/glossary.md: the table of words lacks this row: {rows[0]}"
    ]


def test_held_folders_are_clean() -> None:
    """What is held to the list keeps to it, as `make lint` checks."""
    assert words.main([]) == 0
