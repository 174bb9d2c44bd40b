"""One file for each kind of question: what is checked of an answer, and how it is judged."""
