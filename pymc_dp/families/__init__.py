"""One file per likelihood family; ``pymc_dp.family`` says what each must contain."""
