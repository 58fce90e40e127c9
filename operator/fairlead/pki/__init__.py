"""Certificates and authorities: issued, read and rotated; pure but `tls_context`."""
