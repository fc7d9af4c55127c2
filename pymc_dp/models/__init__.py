"""What is read from a model's graph, once: its likelihoods, their parameters and where records enter. No value of a record is read."""
