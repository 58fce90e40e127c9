"""Why a pod is placed as it is: traces, counterfactuals and mismatches."""
