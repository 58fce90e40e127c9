"""The command `fairlead devices`."""
