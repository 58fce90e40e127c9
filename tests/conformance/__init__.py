"""CEL's own conformance tests, on lowered code and on the engine, as rules of Fairlead."""
