"""TLS, HTTP, dispatch of calls, and the posting of Bindings."""
