"""A reader of rules that answers from the evidence alone, to show that the gold follows from what was said."""
