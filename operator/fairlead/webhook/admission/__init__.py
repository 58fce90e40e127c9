"""The answer to the API server when a policy is applied."""
