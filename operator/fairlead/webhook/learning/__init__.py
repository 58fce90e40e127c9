"""Learning: rules answer from published state, and the replica that leads watches outcomes and publishes them."""
