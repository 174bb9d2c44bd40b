"""Where people judge a sample of answers: blind, by keyboard, every label kept."""
