"""Writes SVG: escaped, rounded, described, and coloured only by the classes of the page that holds it.

Pages insert a drawing without escaping it, so every text in it must be escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

SHAPES = 8
"""Number of distinct shapes and colours before they repeat; the letters next to them never repeat."""


@dataclass(frozen=True)
class Figure:
    """A drawing with its title and caption."""

    key: str
    """Name for links, unique in a page."""
    title: str
    caption: str
    svg: str


@dataclass
class Drawing:
    """A drawing, to which elements are added from back to front; lengths in user units, about a pixel each."""

    key: str
    width: float
    height: float
    title: str
    description: str
    parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> None:
        """Add a straight line; ``kind`` is its CSS class."""
        self.parts.append(f'<line class="{kind}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"/>')

    def path(self, points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        """Add straight lines through points."""
        steps = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self.parts.append(f'<path class="{kind}" d="M{steps}{"Z" if closed else ""}"/>')

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        kind: str,
        title: str = "",
        *,
        pattern: str = "",
        opacity: float | None = None,
    ) -> None:
        """Add a rectangle, with a tooltip.

        ``pattern``: id of the pattern that fills it; ``opacity``: of its colour, 0 to 1.
        """
        shape = f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
        shape += f' fill="url(#{pattern})"' if pattern else ""
        shape += "" if opacity is None else f' fill-opacity="{opacity:.2f}"'
        self.parts.append(f"{shape}>{_title(title)}</rect>" if title else f"{shape}/>")

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start", turn: float = 0) -> None:
        """Add a line of text; ``turn``: rotation in degrees."""
        attributes = f' class="{kind}"' if kind else ""
        attributes += f' text-anchor="{anchor}"' if anchor != "start" else ""
        attributes += f' transform="rotate({_n(turn)} {_n(x)} {_n(y)})"' if turn else ""
        self.parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{attributes}>{escape(text, quote=False)}</text>')

    def marker(
        self, x: float, y: float, series: int, *, hollow: bool = False, size: float = 5.5, title: str = ""
    ) -> None:
        """Add the mark of a series; hollow for diagnostics."""
        kind = f"mark c{series % SHAPES}" + (" hollow" if hollow else "")
        corners = _corners(series % SHAPES, size)
        tooltip = _title(title) if title else ""
        if corners is None:
            self.parts.append(f'<circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(size)}">{tooltip}</circle>')
        else:
            points = " ".join(f"{_n(x + dx)},{_n(y + dy)}" for dx, dy in corners)
            self.parts.append(f'<polygon class="{kind}" points="{points}">{tooltip}</polygon>')

    def render(self) -> str:
        """Return the drawing as an ``svg`` element for a page."""
        head = (
            f'<svg viewBox="0 0 {_n(self.width)} {_n(self.height)}" role="img" '
            f'aria-labelledby="{self.key}-t {self.key}-d">'
        )
        title = f'<title id="{self.key}-t">{escape(self.title)}</title>'
        description = f'<desc id="{self.key}-d">{escape(self.description)}</desc>'
        return "\n".join([head + title + description, *self.parts, "</svg>"])


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _n(value: float) -> str:
    """Format a length with at most one decimal, so that the same figures give the same bytes."""
    return "0" if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")


def _corners(shape: int, r: float) -> list[tuple[float, float]] | None:
    """Return the corners of a shape around its centre; None for the circle.

    Shapes 1 to 7: square, triangle, diamond, inverted triangle, cross, hexagon, star of four points.
    """
    a = 0.36 * r
    return {
        1: [(-0.9 * r, -0.9 * r), (0.9 * r, -0.9 * r), (0.9 * r, 0.9 * r), (-0.9 * r, 0.9 * r)],
        2: [(0, -1.2 * r), (1.1 * r, 0.8 * r), (-1.1 * r, 0.8 * r)],
        3: [(0, -1.25 * r), (1.25 * r, 0), (0, 1.25 * r), (-1.25 * r, 0)],
        4: [(0, 1.2 * r), (1.1 * r, -0.8 * r), (-1.1 * r, -0.8 * r)],
        5: [
            (-a, -r), (a, -r), (a, -a), (r, -a), (r, a), (a, a), (a, r), (-a, r), (-a, a), (-r, a), (-r, -a), (-a, -a),
        ],
        6: [(-0.55 * r, -r), (0.55 * r, -r), (1.1 * r, 0), (0.55 * r, r), (-0.55 * r, r), (-1.1 * r, 0)],
        7: [(0, -1.25 * r), (0.37 * r, -0.37 * r), (1.25 * r, 0), (0.37 * r, 0.37 * r), (0, 1.25 * r),
            (-0.37 * r, 0.37 * r), (-1.25 * r, 0), (-0.37 * r, -0.37 * r)],
    }.get(shape)  # fmt: skip
