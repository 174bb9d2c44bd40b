"""Files of a dataset: model, typed values, reading, validating, ego projection, importers."""
