"""Manifests of a scheduler, from settings and wiring: pure except `shipped_templates`, which reads the templates."""
