"""Declare: what a study is, the cells it consists of, and the records its runs leave."""
