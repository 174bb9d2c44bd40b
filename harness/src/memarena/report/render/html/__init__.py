"""Renders a report as one self-contained HTML file, readable offline, on paper and without scripts."""

from memarena.report.render.html.build import document_to_html, to_html

__all__ = ["document_to_html", "to_html"]
