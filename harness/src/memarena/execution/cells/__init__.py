"""One cell: days are sent, questions asked, and each fact goes to the log as it happens."""
