"""How values and objects of the API are held, compared and refused."""
