"""Unit tests of policies, as their owners write them: nodes, pods and a time in, what the policies have to say out."""
