"""What a release would buy, found out before anything is paid for: expected widths of the posterior, and bounds that the priors suggest."""
