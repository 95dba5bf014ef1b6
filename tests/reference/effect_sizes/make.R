# Makes effect_sizes.json: what R's effectsize says about the samples of ../classic and about mtcars.
# Debian: apt-get install r-base-core r-cran-effectsize r-cran-jsonlite; then: Rscript make.R
suppressMessages({library(effectsize); library(jsonlite)})
samples <- lapply(fromJSON("../classic/classic.json")$two_samples, function(s) list(a = s$a, b = s$b))
samples$mtcars <- list(a = mtcars$mpg[mtcars$am == 0], b = mtcars$mpg[mtcars$am == 1])
answer <- function(s) {
  d <- cohens_d(s$a, s$b); g <- hedges_g(s$a, s$b)
  c(s, list(d = d$Cohens_d, d_ci = c(d$CI_low, d$CI_high), g = g$Hedges_g, g_ci = c(g$CI_low, g$CI_high)))
}
made <- list(made_by = list(R = as.character(getRversion()), effectsize = as.character(packageVersion("effectsize"))),
             samples = lapply(samples, answer))
write(toJSON(made, auto_unbox = TRUE, digits = NA, pretty = TRUE), "effect_sizes.json")
