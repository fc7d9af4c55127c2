"""One file per likelihood family; ``family`` says what each must contain. Regressions have ``second_moments``, ``scores``, ``anchors``."""
