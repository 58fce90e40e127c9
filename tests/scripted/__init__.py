"""An API server that follows a script, or a world that faults befall: real sockets on loopback, and no real time."""
