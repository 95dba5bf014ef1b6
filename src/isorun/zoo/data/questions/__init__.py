"""Questions and candidate answers, word vectors, and the seeds of the paper that asks them."""
