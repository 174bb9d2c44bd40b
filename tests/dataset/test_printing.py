"""Tests that texts of backends, servers and data sets cannot act on a terminal or a spreadsheet."""

from __future__ import annotations

import pytest
from memarena_dataset.printing import csv_cell, echo, printable


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("\x1b]0;title\x07name", "\ufffd]0;title\ufffdname"),
        ("\x9b31mred", "\ufffd31mred"),
        ("new\rold", "new\ufffdold"),
        ("exe\u202etxt", "exe\ufffdtxt"),
        ("half \ud800", "half \ufffd"),
        ("two\nlines\tof naïve 日本 text", "two\nlines\tof naïve 日本 text"),
    ],
)
def test_control_characters_are_replaced(text: str, output: str) -> None:
    assert printable(text) == output


def test_a_printed_line_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\x1b[2Jb")
    echo("c\x1b[2Jd", err=True)
    assert capsys.readouterr() == ("a\ufffd[2Jb\n", "c\ufffd[2Jd\n")


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1+2", "@SUM(1)", "\tx", "\rx", "  =1"])
def test_a_formula_becomes_text_in_a_csv_file(text: str) -> None:
    assert str(csv_cell(text)).startswith("'")


@pytest.mark.parametrize("value", [-1, 0.5, None, True, "plain", "a=b", ""])
def test_other_values_stay_as_they_are(value: object) -> None:
    assert csv_cell(value) == value
