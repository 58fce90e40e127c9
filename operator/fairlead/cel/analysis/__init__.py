"""Analysis of an expression before it runs: types, reads, cost, time and parts."""
