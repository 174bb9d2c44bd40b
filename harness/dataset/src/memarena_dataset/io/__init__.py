"""Reading and writing the files of a data set."""
