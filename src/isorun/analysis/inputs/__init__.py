"""What statistics are made from: samples, tables of results, pairs, ranks."""
