"""Rules in shadow: what a call would have got if they were enforced, with evaluators and caches of their own."""
