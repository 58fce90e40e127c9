"""YAML that knows where each part stands; pure."""
