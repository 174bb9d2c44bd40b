"""One question from asking to verdict: one record set, which terminal, HTML report and viewer render."""
