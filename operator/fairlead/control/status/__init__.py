"""What policies, events and conditions say of the state of a scheduler."""
