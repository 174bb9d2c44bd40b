"""A rule-based solver that answers from the evidence alone, to show that each gold follows from what was said."""
