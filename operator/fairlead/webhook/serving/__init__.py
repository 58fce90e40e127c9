"""The policies that serve: their sources, their last good generations, and the report of a replica."""
