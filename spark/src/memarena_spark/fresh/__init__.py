"""Makes and checks fresh worlds: data sets whose seed could not be known when a run's backends were fixed."""
