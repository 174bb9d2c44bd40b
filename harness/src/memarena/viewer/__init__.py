"""The local web application: runs, their figures and answers to look at."""
