"""Copies the first screen and chart of a finished demonstration into the README.

    make readme-demo            # runs the demonstration first
    python scripts/readme_demo.py FOLDER

Writes docs/demo.svg and the text between the two marker comments in README.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from memarena.cli.scores import report_run
from memarena.report.brief import brief_groups
from memarena.report.charts.bars import ranked_right
from memarena.report.report_input import ReportInput

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- the demonstration's first screen: make readme-demo -->", "<!-- end of it -->"
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1b1f24; } .tick, .label { fill: #57606b; }
.value { font-weight: 600; } .grid { stroke: #d5dae0; } .median { stroke: #1b1f24; stroke-width: 1.6; }
.bar.rank { fill: #1f5fae; fill-opacity: .55; } .bar.rank.hollow { fill: none; stroke: #1f5fae; stroke-width: 1.4; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7ea; } .tick, .label { fill: #9aa4af; } .grid { stroke: #343b43; } .median { stroke: #e4e7ea; }
  .bar.rank { fill: #74aef2; } .bar.rank.hollow { stroke: #74aef2; }
}
"""


def picture(run: ReportInput) -> str:
    """Return the ranked bars as a standalone SVG, for light and dark pages."""
    [(_, rows)] = brief_groups([run])
    figure = ranked_right(rows, "demo")
    if figure is None:
        raise SystemExit("error: the run has no answers to draw")
    head, _, content = figure.svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg" width="690">\n<style>{STYLE}</style>\n{content}\n'


def with_screen(readme: str, screen: str) -> str:
    """Return the README with the screen between its marker comments."""
    block = f"{BEGIN}\n```text\n{screen.strip()}\n```\n{END}"
    text, count = re.subn(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: block, readme, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"error: README.md: expected the marks {BEGIN} and {END} once, found {count}")
    return text


def main() -> None:
    """Run the command."""
    if len(sys.argv) != 2:
        raise SystemExit("error: expected the folder of a demonstration")
    folder = Path(sys.argv[1])
    screen = folder / "summary.txt"
    if not screen.is_file():
        raise SystemExit(f"error: {folder}: no summary.txt; expected the folder of a finished demonstration")
    text = screen.read_text(encoding="utf-8").replace(str(folder), "runs/demo")
    text = "\n".join(line.rstrip() for line in text.splitlines())
    (ROOT / "docs" / "demo.svg").write_text(picture(report_run(folder / "all")), encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(with_screen(readme.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
