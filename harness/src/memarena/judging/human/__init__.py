"""People as judges: drawing what they label, reading what they labelled, and how far they and a judge agree."""
