"""What is wrong with a policy, or will surprise its owner."""
