"""Time from what may help a rejected pod until the pod has its node, by what helped it."""
