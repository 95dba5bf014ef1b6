"""The networks of the papers, to the parameter."""
