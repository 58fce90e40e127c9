"""Rules in shadow on live calls: when calls are compared, and what is counted of that."""
