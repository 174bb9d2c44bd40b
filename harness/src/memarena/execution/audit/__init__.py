"""What backends return and what prompts hold, checked against every word that was ingested."""
