"""The command `fairlead data`."""
