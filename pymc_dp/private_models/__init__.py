"""A model's shape and a release: the private model, what sampling it is annotated with, and what can be drawn from it. No record."""
