"""Groups of pods that start together or not at all: who belongs to one, who is known of it, and who is held for it."""
