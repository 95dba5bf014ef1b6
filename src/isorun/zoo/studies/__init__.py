"""One folder a paper: what it declares, how it trains, and how its tables look with our numbers in them."""
