"""Answers questions by rules from the evidence alone, to show that each gold follows from the turns."""
