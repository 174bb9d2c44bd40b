"""Looking at the readers of a run while it goes on: which process answers, and where that process is connected to."""
