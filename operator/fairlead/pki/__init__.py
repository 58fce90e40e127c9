"""Certificates and authorities: issued, read and rotated; pure except `tls_context`."""
