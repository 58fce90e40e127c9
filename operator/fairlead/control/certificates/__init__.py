"""The schedulers' certificates and the CA bundle of the admission webhook."""
