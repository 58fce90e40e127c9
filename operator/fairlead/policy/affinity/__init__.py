"""Node affinity that says what filters decide, as far as labels can say it."""
