"""A report as one self-contained HTML file: no script, nothing fetched, readable offline and on paper."""

from memarena.report.render.html.build import to_html

__all__ = ["to_html"]
