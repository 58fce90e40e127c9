"""The page of `fairlead ui`: its views, which pure functions make of a simulated cluster, and its server."""
