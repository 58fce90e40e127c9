"""List and watch, the store, Secrets."""
