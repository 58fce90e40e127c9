"""A real cluster on a bare machine: control plane as processes, one real node, kwok nodes; or kind; or an existing one."""
