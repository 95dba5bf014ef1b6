"""Models whose random effects have slopes: covariance matrices in place of variances, otherwise the same method."""
