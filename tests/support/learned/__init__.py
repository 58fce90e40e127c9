"""Explorer of what is learned: leaders, an API server that loses answers, and observations in any order."""
