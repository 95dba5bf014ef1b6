"""How the six networks are trained: recipes, generators for each factor, and one fast step for CPU and GPU."""
