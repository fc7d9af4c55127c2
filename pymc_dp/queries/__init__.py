"""Questions about a table: what may be asked, what it costs, and what is known from what was answered before."""
