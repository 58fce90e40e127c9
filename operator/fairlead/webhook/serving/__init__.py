"""Which policies serve, where they come from, and what a replica reports."""
