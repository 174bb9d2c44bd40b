"""Writes a report as a LaTeX document that compiles unchanged; comment lines around each table help to copy it.

The output is ASCII, for any engine and input encoding, and needs only packages of a basic installation.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from memarena.report.layout import Cell, Document, Section, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "-": "{-}",
}  # fmt: skip
"""Characters that are special in LaTeX. Hyphens are in braces, so that two of them do not make a dash."""
_SYMBOLS = {
    "±": r"$\pm$", "…": r"\ldots{}", "◇": r"$\diamond$", "†": r"\dag{}", "‡": r"\ddag{}", "§": r"\S{}", "¶": r"\P{}",
    "※": r"\textreferencemark{}", "⊗": r"$\otimes$", "◌": r"$\circ$", "◷": r"$\oslash$", "×": r"$\times$",
    "∅": r"$\emptyset$",
    "Δ": r"$\Delta$", "·": r"$\cdot$", "½": r"$\frac{1}{2}$", "≈": r"$\approx$", "≤": r"$\le$", "≥": r"$\ge$",
    "→": r"$\rightarrow$", "–": "--", "—": "---",
    "“": "``", "”": "''", "’": "'", "‘": "`", "−": r"$-$", "κ": r"$\kappa$", "\u00a0": "~", "²": r"$^2$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "′": r"$'$", "ß": r"\ss{}",
}  # fmt: skip
"""Characters outside of ASCII that a report uses, as LaTeX commands."""
_ACCENTS = {
    "\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0304": r"\=", "\u0306": r"\u",
    "\u0307": r"\.", "\u0308": r"\"", "\u030a": r"\r", "\u030b": r"\H", "\u030c": r"\v", "\u0327": r"\c",
}  # fmt: skip
"""Commands of combining accents, for letters that decompose into a letter of ASCII and one accent."""
FLOATS_AT_ONCE = 8
"""Tables between two clearpage commands, since LaTeX queues only a limited number of floats."""
_PREAMBLE = r"""% MemArena report. Compiles as it is; a table can be copied from between its comment lines.
% A document that takes tables over needs \usepackage{booktabs,graphicx,textcomp} and the two commands below.
\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[a4paper,margin=20mm]{geometry}
\usepackage{booktabs,graphicx,textcomp}
\newcommand{\mafit}[1]{\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}}
\newcommand{\mabest}[1]{\textbf{#1}}
\setlength{\parindent}{0pt}
\begin{document}
"""


def to_latex(document: Document) -> str:
    """Return the document as LaTeX with a final newline."""
    lines = [_PREAMBLE + rf"\section*{{{escaped(document.title)}}}"]
    tables = 0
    for part in document.sections:
        lines += ["", *_section(part)]
        tables += part.table is not None
        if part.table is not None and tables % FLOATS_AT_ONCE == 0:
            lines.append(r"\clearpage")
    return "\n".join([*lines, "", r"\end{document}"]) + "\n"


def escaped(text: str) -> str:
    """Escape text for LaTeX, in ASCII; a character without a LaTeX command is written as its code point."""
    return "".join(_character(c) for c in unicodedata.normalize("NFC", " ".join(text.split())))


def _character(character: str) -> str:
    if character in _SPECIAL or character in _SYMBOLS:
        return _SPECIAL.get(character) or _SYMBOLS[character]
    if " " <= character <= "~":
        return character
    decomposed = unicodedata.normalize("NFD", character)
    base, marks = decomposed[:1], decomposed[1:]
    if base.isascii() and base.isalpha() and marks in _ACCENTS:
        # LaTeX sets accents on i and j without their dots: \i{} and \j{}.
        stem = rf"\{base}{{}}" if base in "ij" else base
        return f"{_ACCENTS[marks]}{{{stem}}}"
    return rf"\texttt{{U+{ord(character):04X}}}"


def _section(part: Section) -> Iterator[str]:
    if part.table is None:
        yield rf"\subsection*{{{escaped(part.title)}}}"
        yield r"\begin{flushleft}\small"
        yield from (rf"{_guarded(escaped(str(line))) or '~'}\\" for line in (*part.lines, *part.notes))
        yield r"\end{flushleft}"
        return
    yield f"% begin table {part.anchor}"
    yield r"\begin{table}[htbp]"
    yield r"\centering\small"
    yield rf"\caption{{{escaped(part.title)}}}\label{{tab:{part.anchor}}}"
    yield r"\mafit{%"
    yield from _tabular(part.table)
    yield "}"
    yield from _legend(part)
    yield r"\end{table}"
    yield f"% end table {part.anchor}"


def _tabular(table: Table) -> Iterator[str]:
    yield rf"\begin{{tabular}}{{@{{}}{''.join('l' if c.align == 'left' else 'r' for c in table.columns)}@{{}}}}"
    yield r"\toprule"
    yield _row([escaped(column.title.strip()) for column in table.columns])
    yield r"\midrule"
    for index, row in enumerate(table.rows):
        if index in table.breaks:
            yield r"\midrule"
        yield _row([_cell(cell) for cell in row])
    yield r"\bottomrule"
    yield r"\end{tabular}%"


def _row(texts: list[str]) -> str:
    return " & ".join(_guarded(text) for text in texts) + r" \\"


def _guarded(text: str) -> str:
    """Prefix ``{}`` to text that LaTeX would read as an argument of the line end above: ``[`` or ``*`` at its start."""
    return "{}" + text if text.startswith(("[", "*")) else text


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    if cell.strong:
        return rf"\mabest{{{text}}}"
    return rf"\textit{{{text}}}" if cell.slanted else text


def _legend(part: Section) -> Iterator[str]:
    lines = [escaped(note) for note in part.notes]
    lines += [rf"\emph{{{escaped(title.strip())}}}: {escaped(meaning)}" for title, meaning in part.legend]
    if part.trace:
        lines.append(rf"list these answers: \texttt{{{escaped(part.trace)}}}")
    if part.trace_columns:
        filters_by_column = ", ".join(
            rf"{escaped(name)} \texttt{{{escaped(filters)}}}" for name, filters in part.trace_columns
        )
        lines.append(f"for the answers of one column, add: {filters_by_column}")
    if lines:
        yield r"\par\smallskip\parbox{\linewidth}{\raggedright\footnotesize"
        yield ";\n".join(lines) + ".}"
