module fairlead.dev/testbed/pod

go 1.26.0
