# Makes classic.json: what R says about small simulated samples.
# Debian: apt-get install r-base-core r-cran-coin r-cran-jsonlite; then: Rscript make.R
suppressMessages({library(coin); library(jsonlite)})
set.seed(20240611)
samples <- list(
  five = list(a = round(rnorm(5, 0.91, 0.01), 5), b = round(rnorm(5, 0.90, 0.02), 5)),
  unequal = list(a = round(rnorm(8, 2, 1), 4), b = round(rnorm(13, 1.2, 2), 4)),
  sixteen = list(a = round(rexp(16), 4), b = round(rexp(16, 0.6), 4)),
  # counts and not shares: R's differences of shares are tied or not by the accidents of floating point
  tied = list(a = rbinom(7, 50, 0.90), b = rbinom(9, 50, 0.86)),
  tied_pairs = list(a = rbinom(12, 40, 0.85), b = rbinom(12, 40, 0.80)),
  large = list(a = round(rnorm(60, 0.3, 1), 2), b = round(rnorm(55, 0, 1), 2))
)
ci_of_delta <- function(a, b) {
  n <- length(a); m <- length(b)
  t <- unname(t.test(a, b, var.equal = TRUE)$statistic); k <- sqrt(n * m / (n + m))
  end <- function(level) suppressWarnings(
    uniroot(function(ncp) pt(t, n + m - 2, ncp) - level, c(t - 10, t + 10), tol = 1e-12)$root) / k
  c(end(0.975), end(0.025))
}
levene <- function(a, b, centre) {
  d <- c(abs(a - centre(a)), abs(b - centre(b))); g <- factor(rep(1:2, c(length(a), length(b))))
  fit <- anova(lm(d ~ g)); c(fit[1, "F value"], fit[1, "Pr(>F)"])
}
two_samples <- function(s) {
  a <- s$a; b <- s$b
  d <- data.frame(y = c(a, b), g = factor(rep(c("a", "b"), c(length(a), length(b)))))
  small <- max(length(a), length(b)) < 50
  free <- !any(duplicated(c(a, b)))
  law <- if (small) "exact" else "asymptotic"
  out <- list(
    a = a, b = b,
    u = unname(suppressWarnings(wilcox.test(a, b))$statistic),
    u_p = if (small) as.numeric(pvalue(wilcox_test(y ~ g, d, distribution = "exact"))) else suppressWarnings(wilcox.test(a, b))$p.value,
    u_p_larger = if (small) as.numeric(pvalue(wilcox_test(y ~ g, d, distribution = "exact", alternative = "greater"))) else suppressWarnings(wilcox.test(a, b, alternative = "greater"))$p.value,
    welch_p = t.test(a, b)$p.value, welch_ci = as.numeric(t.test(a, b)$conf.int),
    delta_ci = ci_of_delta(a, b),
    levene_median = levene(a, b, median), levene_mean = levene(a, b, mean),
    # whole numbers: of decimals, R ties equal distances or not by the accidents of floating point
    fligner = with(fligner.test(list(round(a * 1e5), round(b * 1e5))), unname(c(statistic, p.value))),
    f = unname(c(var.test(a, b)$statistic, var.test(a, b)$p.value))
  )
  if (free && small) {
    w <- wilcox.test(a, b, conf.int = TRUE, exact = TRUE)
    out$shift <- unname(w$estimate); out$shift_ci <- as.numeric(w$conf.int)
  }
  if (length(a) == length(b)) {
    out$paired_t_p <- t.test(a, b, paired = TRUE)$p.value
    out$paired_ci <- as.numeric(t.test(a, b, paired = TRUE)$conf.int)
    e <- data.frame(x = a, y = b)
    out$wilcoxon_p <- as.numeric(pvalue(wilcoxsign_test(x ~ y, e, distribution = "exact", zero.method = "Wilcoxon")))
  }
  out
}
pairs <- list(
  six = list(x = c(3, 1, 4, 2, 6, 5), y = round(rnorm(6), 4)),
  nine = list(x = round(rnorm(9), 4), y = round(rnorm(9), 4)),
  fifteen = { x <- round(rnorm(15), 4); list(x = x, y = round(x + rnorm(15), 4)) },
  forty = { x <- round(rnorm(40), 4); list(x = x, y = round(0.4 * x + rnorm(40), 4)) },
  opposite = { x <- round(rnorm(20), 4); list(x = x, y = round(rnorm(20) - x, 4)) },
  hundred = { x <- round(rnorm(100), 5); list(x = x, y = round(0.2 * x + rnorm(100), 5)) },
  tied = list(x = rbinom(30, 20, 0.8) / 20, y = rbinom(30, 20, 0.7) / 20)
)
agreement <- function(s) {
  free <- !any(duplicated(s$x)) && !any(duplicated(s$y))
  k <- suppressWarnings(cor.test(s$x, s$y, method = "kendall", exact = free && length(s$x) < 50))
  r <- suppressWarnings(cor.test(s$x, s$y, method = "spearman", exact = free))
  list(x = s$x, y = s$y, tau = unname(k$estimate), tau_p = k$p.value, rho = unname(r$estimate), rho_p = r$p.value)
}
groups <- list(u = rbinom(8, 30, 0.8) / 30, v = rbinom(10, 30, 0.7) / 30, w = rbinom(9, 30, 0.85) / 30)
block <- matrix(round(rnorm(40) + rep(c(0, 0.4, 0.9, 0.2), each = 10), 1), nrow = 10)
p <- c(0.012, 0.5, 0.003, 0.04, 0.04, 0.9)
write_json(list(
  two_samples = lapply(samples, two_samples),
  agreement = lapply(pairs, agreement),
  kruskal = list(groups = groups, statistic = unname(kruskal.test(groups)$statistic), p = kruskal.test(groups)$p.value),
  friedman = list(block = block, statistic = unname(friedman.test(block)$statistic), p = friedman.test(block)$p.value),
  adjusted = list(p = p, holm = p.adjust(p, "holm"), bh = p.adjust(p, "BH")),
  tukey = list(q = c(0.5, 2.0, 3.3, 5.1), groups = c(2, 4, 8, 12),
               tail = mapply(function(q, k) ptukey(q, k, Inf, lower.tail = FALSE), c(0.5, 2.0, 3.3, 5.1), c(2, 4, 8, 12)),
               demsar = qtukey(0.95, 4, Inf) / sqrt(2))
), "classic.json", digits = NA, auto_unbox = TRUE, pretty = TRUE)
