"""Certificates of the schedulers, and the CA bundle of the admission webhook."""
