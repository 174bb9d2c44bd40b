"""Finds functions whose docstring does not begin with a verb, or with Whether; run by `make lint`.

    python -m scripts.docstrings [PATH…]       default: all product code (FOLDERS)

A docstring that names the result ("The base URL of an API, None for …") leaves out what the function does. Properties
and functions that return nothing are not checked. Prints `file:line: docstring` for each, and exits with 1 if there is
one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("backends", "bench", "harness", "proto", "scripts", "simulator", "spark")
# Words that no verb is: articles, pronouns, prepositions, a quotation, and capitalised plurals ("Rows of a table").
NO_VERB = re.compile(
    r"(The|An?|What|Where|When|How|Why|Who(se|ever)?|Which|As|From|For|Each|All|Every|One|Some|Its|In|Of|By|With|So|That"
    r"|Those|None|Both|Not?|At|On|To|If|Else|Only|SHA|[A-Z][a-z]*[a-rt-z]s)\b|``|\d"
)


def problems(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, first line of the docstring) of each function whose docstring does not begin with a verb."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
        returns = "None" if node.returns is None else ast.unparse(node.returns)
        checked = returns != "None" and not decorators & {"property", "cached_property"}
        if docstring and checked and NO_VERB.match(docstring):
            yield node.lineno, docstring.partition("\n")[0]


def python_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the Python files of product code under ``paths``, without tests and generated code."""
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            if "tests" not in file.parts and "_pb2" not in file.name and ".venv" not in file.parts:
                yield file


def main(arguments: Sequence[str]) -> int:
    """Print the problems and return the exit code."""
    paths = [Path(argument) for argument in arguments] or [ROOT / folder for folder in FOLDERS]
    lines = [
        f"{file}:{line}: {docstring}: expected a verb at the beginning (Return, Yield, Whether …)"
        for file in python_files(paths)
        for line, docstring in problems(ast.parse(file.read_text(encoding="utf-8")))
    ]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
