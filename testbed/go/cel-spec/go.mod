module fairlead.dev/testbed/cel-spec

go 1.26.0

require cel.dev/expr v0.26.0
