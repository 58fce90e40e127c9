"""The custom resource as types, and the CRD made from them. Knows nothing else of this project."""
