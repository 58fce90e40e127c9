"""The custom resource as types, and the CRD generated from them. Imports nothing else of this project."""
