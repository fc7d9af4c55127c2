"""What would be released of a model, how far one record can move it, and the table that ``inspect`` shows. No value of a record is read."""
