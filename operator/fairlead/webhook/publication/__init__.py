"""Publication of node affinity: what the policies that serve imply for pods that are created."""
