# Makes the reference fits of models with random slopes: slopes/<case>.json, and slopes/<data>.csv for them.
# Needs R with lme4, lmerTest, pbkrtest, nlme and jsonlite. Run in this folder: Rscript make_slopes.R
# sleepstudy: Belenky et al. 2003; Machines: Milliken and Johnson 1992; cake: Cochran and Cox 1957; the rest is simulated.
suppressMessages({
  library(lme4); library(lmerTest); library(jsonlite)
})

named <- function(table) {
  table <- as.data.frame(table)
  cbind(name = rownames(table), data.frame(lapply(table, as.numeric), check.names = FALSE))
}

control <- lmerControl(
  optimizer = "nloptwrap", calc.derivs = FALSE, check.conv.singular = "ignore",
  optCtrl = list(xtol_abs = 1e-12, xtol_rel = 1e-12, ftol_abs = 1e-14, ftol_rel = 1e-16, maxeval = 1e5)
)

golden <- function(case, file, formula) {
  data <- read.csv(file.path("slopes", paste0(file, ".csv")), stringsAsFactors = TRUE)
  text <- formula
  formula <- as.formula(formula)
  environment(formula) <- environment()
  fit <- lmer(formula, data, control = control)
  ml <- lmer(formula, data, REML = FALSE, control = control)
  result <- list(
    formula = text, data = file, theta = unname(getME(fit, "theta")), columns = lapply(getME(fit, "cnms"), I),
    groups = I(names(getME(fit, "cnms"))),
    loglik_reml = as.numeric(logLik(fit)), loglik_ml = as.numeric(logLik(ml)), aic = AIC(fit), aic_ml = AIC(ml),
    singular = isSingular(fit), sigma = sigma(fit),
    random = as.data.frame(VarCorr(fit)),
    satterthwaite = named(coef(summary(fit))), kenward_roger = named(coef(summary(fit, ddf = "Kenward-Roger"))),
    anova = named(anova(fit)), anova_kr = named(anova(fit, ddf = "Kenward-Roger")),
    satterthwaite_ml = named(coef(summary(ml))),
    ranova = named(ranova(fit))[-1, ],
    ranef = lapply(ranef(fit, condVar = FALSE), function(table) cbind(level = rownames(table), table))
  )
  write_json(result, file.path("slopes", paste0(case, ".json")), digits = NA, auto_unbox = TRUE, na = "null")
}

save <- function(data, file) {
  write.csv(data, file.path("slopes", paste0(file, ".csv")), row.names = FALSE, quote = FALSE)
}

set.seed(20250117)
vary <- function(codes, sd) rnorm(max(codes), 0, sd)[codes]

save(sleepstudy, "sleepstudy")
golden("sleepstudy_correlated", "sleepstudy", "Reaction ~ Days + (Days | Subject)")
golden("sleepstudy_uncorrelated", "sleepstudy", "Reaction ~ Days + (Days || Subject)")
golden("sleepstudy_nested_bars", "sleepstudy", "Reaction ~ 1 + (1 | Subject) + (0 + Days | Subject)")

data(Machines, package = "nlme")
machines <- as.data.frame(Machines)
machines$Worker <- paste0("w", machines$Worker)
save(machines, "machines")
golden("machines_factor", "machines", "score ~ Machine + (Machine | Worker)")
golden("machines_levels", "machines", "score ~ Machine + (0 + Machine | Worker)")

data(cake)
cake$replicate <- paste0("r", cake$replicate)
save(cake[, c("replicate", "recipe", "temp", "angle")], "cake")
golden("cake_intercepts", "cake", "angle ~ recipe * temp + (1 | recipe:replicate)")
golden("cake_slopes", "cake", "angle ~ recipe * temp + (temp || replicate) + (1 | recipe:replicate)")

crossed <- expand.grid(repeat_id = paste0("k", 1:3), seed = paste0("s", 1:8), task = paste0("t", 1:5),
  approach = c("base", "new"))
crossed$lr <- round(runif(nrow(crossed), 0.5, 3), 3)
seed_code <- as.integer(crossed$seed)
task_code <- as.integer(crossed$task)
new <- crossed$approach == "new"
crossed$accuracy <- with(crossed, 70 + new + lr + vary(seed_code, 1.2) + vary(seed_code, 0.8) * lr + vary(task_code, 2)
  + vary(task_code, 1) * new + rnorm(nrow(crossed), 0, 1))
crossed <- crossed[-sample(nrow(crossed), 31), ]
save(crossed, "crossed")
golden("crossed_two_slopes", "crossed", "accuracy ~ approach + lr + (1 + lr | seed) + (approach | task)")
golden("crossed_three_terms", "crossed", "accuracy ~ approach * lr + (lr || seed) + (0 + approach | task) + (1 | repeat_id)")
golden("crossed_interaction", "crossed", "accuracy ~ approach + lr + (approach * lr | seed) + (1 | task)")

two <- expand.grid(run = 1:9, group = paste0("g", 1:12))
two$x <- round(rnorm(nrow(two)), 3)
two$z <- round(rnorm(nrow(two), 100, 20), 1)
group_code <- as.integer(two$group)
shared <- rnorm(12)
two$y <- with(two, x + 0.02 * z + shared[group_code] * (1.5 + 0.8 * x) + rnorm(nrow(two), 0, 3))
save(two, "two")
golden("singular_correlation", "two", "y ~ x + z + (x | group)")
golden("singular_slope", "two", "y ~ x + z + (x + z | group)")
