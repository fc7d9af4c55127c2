"""One file per likelihood family; ``family`` says what each must contain, ``second_moments`` and ``scores`` are those of regressions."""
