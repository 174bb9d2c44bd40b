"""A strict checker of the LaTeX that reports use: it refuses whatever would not compile.

Tests need no TeX installation with it. It knows only the commands of ``KNOWN``, so a report that begins to use another
must add it here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\.|\\\n|%[^\n]*\n|[{}$&#_^~%]|[^\\{}$&#_^~%]+", re.DOTALL)
KNOWN = {
    "Delta", "H", "P", "S", "alpha", "approx", "begin", "beta", "bottomrule", "c", "caption", "cdot", "centering",
    "circ", "clearpage", "dag", "ddag", "diamond", "documentclass", "else", "emph", "emptyset", "end", "fi",
    "footnotesize", "frac", "gamma", "ge", "i", "ifdim", "j", "kappa", "label", "ldots", "le", "linewidth", "mabest",
    "mafit", "midrule", "newcommand", "oslash", "otimes", "par", "parbox", "parindent", "pm", "r", "raggedright",
    "resizebox", "rightarrow", "section", "setlength", "small", "smallskip", "ss", "subsection", "textasciicircum",
    "textasciigrave", "textasciitilde", "textbackslash", "textbar", "textbf", "textgreater", "textit", "textless",
    "textquotedbl", "textquotesingle", "textreferencemark", "texttt", "times", "toprule", "u", "usepackage", "v",
    "width",
}  # fmt: skip
"""Commands that a report may use; all belong to LaTeX, booktabs, graphicx or textcomp."""


class LatexError(Exception):
    """The text would not compile, or would compile to something else."""


@dataclass
class _State:
    braces: int = 0
    math: bool = False
    environments: list[str] = field(default_factory=list)


def check(text: str) -> None:
    """Raise LatexError on unbalanced braces, math or environments, malformed rows, or unknown commands."""
    if not text.isascii():
        raise LatexError(f"not ASCII: {next(c for c in text if not c.isascii())!r}")
    state = _State()
    for token in _tokens(text):
        _take(token, state)
    if state.braces or state.math or state.environments:
        raise LatexError(f"left open: {state}")
    for table in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL):
        check_table(table)


def _tokens(text: str) -> list[str]:
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text:
        raise LatexError("something is no token of LaTeX")
    return tokens


def _take(token: str, state: _State) -> None:
    if token == "{":
        state.braces += 1
    elif token == "}":
        state.braces -= 1
        if state.braces < 0:
            raise LatexError("a brace too many is closed")
    elif token == "$":
        state.math = not state.math
    elif token in "_^" and not state.math:
        raise LatexError(f"{token} outside math")
    elif token[0] == "\\" and token[1:].isalpha() and token[1:].rstrip("*") not in KNOWN:
        raise LatexError(f"unknown command {token}")


def check_table(table: str) -> None:
    """Raise LatexError unless every row has as many cells as there are columns."""
    columns = re.match(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", table)
    if columns is None:
        raise LatexError("a table without columns")
    rows = re.findall(r"^(.*) \\\\$", table, re.MULTILINE)
    for row in rows:
        cells = len(re.findall(r"(?<!\\)&", row)) + 1
        if cells != len(columns[1]):
            raise LatexError(f"{cells} cells for {len(columns[1])} columns: {row[:80]}")
        if row.startswith(("[", "*")):
            raise LatexError("a row begins with what the line end above takes for its argument")
    if not rows or table.count(r"\toprule") != 1 or table.count(r"\bottomrule") != 1:
        raise LatexError("a table without rows or rules")


def environments(text: str) -> None:
    """Raise LatexError unless environments are closed in the order in which they were opened."""
    stack: list[str] = []
    for command, name in re.findall(r"\\(begin|end)\{([a-z]+)\}", text):
        if command == "begin":
            stack.append(name)
        elif not stack or stack.pop() != name:
            raise LatexError(f"\\end{{{name}}} closes nothing")
    if stack:
        raise LatexError(f"never closed: {stack}")
