"""Builds the trace of one question, from its wording to the verdict, which terminal, HTML report and viewer render."""
