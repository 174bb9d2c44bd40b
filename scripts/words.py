"""Finds words that are out (scripts/words.toml) in names of Python code and in prose; run by `make lint`.

    python -m scripts.words                    the folders that are held to the list (HELD, DOCUMENTS)
    python -m scripts.words --count PATH…      how many hits each word has in files or folders, held or not

Prints one line for each hit, `file:line: word → what to write`, and exits with 1 if there is one. docs/glossary.md has
the same table for readers; a row that it lacks is a hit too.
"""

from __future__ import annotations

import argparse
import ast
import collections
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).with_name("words.toml")
GLOSSARY = Path("docs/glossary.md")

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs")
HELD = (
    "scripts",
    "harness/answering",
    "harness/dataset",
    "harness/src/memarena/cli",
    "harness/src/memarena/client",
    "harness/src/memarena/configs",
    "harness/src/memarena/execution",
    "harness/src/memarena/gateway",
    "harness/src/memarena/judging",
    "harness/src/memarena/log",
    "harness/src/memarena/meters",
    "harness/src/memarena/readers",
    "harness/src/memarena/paper",
    "harness/src/memarena/report",
    "harness/src/memarena/reproduction",
    "harness/src/memarena/scoring",
    "harness/src/memarena/site",
    "harness/src/memarena/sweep",
    "harness/src/memarena/tables",
    "harness/src/memarena/viewer",
    "bench",
    "simulator/dataset_quality",
    "spark/src",
)
# Code whose strings are texts of a data set, of people or of a report's golden files: only its names, comments and
# docstrings are looked at.
CONTENT = (
    "simulator",
    "tests",
    "bench",
    "harness/judge_training",
    "harness/src/memarena/judging",
    "harness/src/memarena/report",
)
# At the end of a line whose name a file format or a wire message prescribes.
PRESCRIBED = "# words: a name of the file format"
# Not prose: a block of code, ``path``, `--beside NAME`, the target of a link, a quotation of a data set.
CODE = re.compile(r"(`{3,}).*?\1|``[^`]+``|`[^`]+`|\]\([^)]*\)|(?m:^)>[^\n]*", re.DOTALL)

PATTERN = re.compile(r"\(\?|\w\|\w|\\[bdsw]")  # of a regular expression: `(?:in|beside)`, `\bbeside\b`


@dataclass(frozen=True)
class Word:
    """A word that is out: its forms in names, and the pattern that finds it in prose, None if prose may have it."""

    word: str
    names: tuple[str, ...]
    instead: str
    why: str
    prose: re.Pattern[str] | None
    folders: tuple[str, ...] = ("",)
    """Folders in which names are checked for the word; by default all."""

    @property
    def row(self) -> str:
        """Return the word's row in the glossary."""
        return f"| {self.word} | {self.instead} | {self.why} |"

    def names_it(self, name: str) -> bool:
        """Whether a name is this word or ends in it after an underscore (`found`, `paths_found`)."""
        return any(re.search(rf"(^|_){word}_?$", name.lower()) for word in self.names)


@dataclass(frozen=True, order=True)
class Hit:
    """An occurrence of a word that is out."""

    file: str
    line: int
    text: str
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text} → {self.instead}"


def words(path: Path = TABLE) -> list[Word]:
    """Read the list of words that are out."""
    return [
        Word(
            word=entry["word"],
            names=tuple(entry["names"]),
            instead=entry["instead"],
            why=entry["why"],
            prose=re.compile(entry["prose"], re.IGNORECASE) if "prose" in entry else None,
            folders=tuple(entry.get("folders", ("",))),
        )
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["word"]
    ]


def hits(root: Path, paths: Sequence[str], word_list: Sequence[Word]) -> list[Hit]:
    """Return every hit in files or folders of a repository, sorted by file and line."""
    result: set[Hit] = set()
    for path in _files(root, paths):
        file = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            names, prose = [], [(1, _without_code(text))]
        else:
            lines = text.splitlines()
            names = [(n, name) for n, name in _names(ast.parse(text)) if not lines[n - 1].endswith(PRESCRIBED)]
            prose = [*_comments(text), *_strings(ast.parse(text), messages=not file.startswith(CONTENT))]
        for word in word_list:
            if file.startswith(word.folders):
                result |= {
                    Hit(file, line, name, word.word, word.instead) for line, name in names if word.names_it(name)
                }
            for first, passage in prose:
                for match in word.prose.finditer(passage) if word.prose else ():
                    line = first + passage[: match.start()].count("\n")
                    result.add(Hit(file, line, match.group(), word.word, word.instead))
    return sorted(result)


def missing_rows(root: Path, word_list: Sequence[Word]) -> list[str]:
    """Return one line for each word whose row the glossary lacks."""
    text = (root / GLOSSARY).read_text(encoding="utf-8")
    return [f"{GLOSSARY}: the table of words lacks this row: {word.row}" for word in word_list if word.row not in text]


def _files(root: Path, paths: Sequence[str]) -> Iterator[Path]:
    for name in paths:
        path = root / name
        if not path.exists():
            raise FileNotFoundError(f"{name}: no such file or folder in {root}")
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            generated = "_pb2" in file.name or {"node_modules", ".venv", "build"} & {*file.relative_to(root).parts}
            if file.suffix in (".md", ".py") and not generated and file.relative_to(root) != GLOSSARY:
                yield file


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that code names: variables, parameters, functions, classes, fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)  # PathsFound: Paths_Found
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _without_code(token.string)


def _strings(tree: ast.Module, *, messages: bool) -> Iterator[tuple[int, str]]:
    """Yield line and text of docstrings; with ``messages`` also of other strings of several words, except patterns."""
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Constant)):
        looked_at = node in docstrings or (messages and not PATTERN.search(str(node.value)))
        if looked_at and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, _without_code(node.value)


def _without_code(text: str) -> str:
    """Return the text with backquotes in place of code, so that lines and columns stay the same."""
    return CODE.sub(lambda match: re.sub(r"[^\n]", "`", match.group()), text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description="Find words that are out.")
    parser.add_argument("--count", action="store_true", help="how many hits each word has, instead of the hits")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument("paths", nargs="*", help="files or folders in it; default: those that are held to the list")
    options = parser.parse_args(arguments)
    word_list = words()
    try:
        lines: list[str] = [] if options.paths else missing_rows(options.root, word_list)
        result = hits(options.root, options.paths or [*DOCUMENTS, *HELD], word_list)
    except (OSError, SyntaxError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if options.count:
        counts = collections.Counter(hit.word for hit in result)
        lines += [f"{word.word}: {counts[word.word]}" for word in word_list]
    else:
        lines += map(str, result)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if result or (lines and not options.count) else 0


if __name__ == "__main__":
    sys.exit(main())
