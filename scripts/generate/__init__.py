"""Writes all that is generated: CRDs, chart, references and examples."""
