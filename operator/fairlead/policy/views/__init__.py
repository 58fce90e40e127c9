"""What rules see of pods and nodes."""
