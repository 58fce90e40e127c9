"""An API server in memory, with what a cluster does around it, in virtual time: thousands of seconds pass in one."""
