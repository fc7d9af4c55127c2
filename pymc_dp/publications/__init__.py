"""Numbers that somebody else made private: what was done to them, and a model of the truth that knows it."""
