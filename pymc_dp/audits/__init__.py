"""Lower bounds on the epsilon of any function, by running it on two data sets and telling its results apart."""
