"""Explanations of verdicts: traces, counterfactuals and mismatches."""
