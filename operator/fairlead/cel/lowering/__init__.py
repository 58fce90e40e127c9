"""Lowering of checked expressions to Python byte code, through `ast`: `lowerer` writes it, `program` runs it."""
