"""Binds: decide, grant devices where the pod asks for them, post the Binding; and what grants need to know."""
