"""Output, exit codes and options of the command line."""
