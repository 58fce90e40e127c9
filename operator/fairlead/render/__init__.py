"""Manifests of a scheduler from settings and wiring: pure but for `shipped_templates`, which reads the templates."""
