"""Models of a run: started together, warmed up, started again when they die."""
