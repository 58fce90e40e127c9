"""Values of the language and objects of the API: types, equality, errors and the cost meter."""
