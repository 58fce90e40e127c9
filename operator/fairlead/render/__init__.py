"""What a scheduler is made of, as manifests: pure but for `shipped`, which reads the templates."""
