"""A report as one self-contained HTML file: nothing fetched, readable offline, on paper and without script."""

from memarena.report.render.html.build import document_to_html, to_html

__all__ = ["document_to_html", "to_html"]
