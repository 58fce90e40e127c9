"""A checked expression becomes Python byte code, through `ast`: see `lowerer` for how, `program` for what comes out."""
