"""Publication of node affinity by the leader: objects that an admission policy of the chart reads."""
