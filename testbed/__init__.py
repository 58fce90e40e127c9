"""A real cluster on a bare machine: processes, a real node, kwok nodes; or kind; or an existing one."""
