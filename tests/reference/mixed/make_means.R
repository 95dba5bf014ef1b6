# Makes the reference means and comparisons: means/<case>.json, from the data of the other references.
# Needs R with lme4, lmerTest, pbkrtest, emmeans, multcomp, mvtnorm and jsonlite. Run in this folder: Rscript make_means.R
suppressMessages({
  library(lme4); library(lmerTest); library(emmeans); library(multcomp); library(jsonlite)
})
emm_options(lmerTest.limit = 1e5, pbkrtest.limit = 1e5, msg.nesting = FALSE, msg.interaction = FALSE)
control <- lmerControl(
  optimizer = "nloptwrap", calc.derivs = FALSE, check.conv.singular = "ignore",
  optCtrl = list(xtol_abs = 1e-12, xtol_rel = 1e-12, ftol_abs = 1e-14, ftol_rel = 1e-16, maxeval = 1e5)
)

columns <- function(table, first) {
  table <- as.data.frame(table)
  keep <- c("estimate", "emmean", "SE", "df", "lower.CL", "upper.CL", "p.value")
  out <- table[, intersect(names(table), keep)]
  names(out) <- c(emmean = "estimate", estimate = "estimate", SE = "se", df = "df", lower.CL = "lower",
    upper.CL = "upper", p.value = "p")[names(out)]
  cbind(name = as.character(table[[first]]), out)
}

# against: the control of Dunnett's comparisons; precise: digits of mvtnorm, which integrates at random.
golden <- function(case, file, formula, factor, against) {
  data <- read.csv(file, stringsAsFactors = TRUE)
  text <- formula
  formula <- as.formula(formula)
  environment(formula) <- environment()
  fit <- lmer(formula, data, control = control)
  by_method <- lapply(c(satterthwaite = "satterthwaite", "kenward-roger" = "kenward-roger"), function(method) {
    means <- emmeans(fit, factor, lmer.df = method)
    every <- pairs(means)
    one <- contrast(means, "trt.vs.ctrl", ref = against)
    set.seed(1)
    list(
      means = columns(summary(means), 1),
      none = columns(summary(every, infer = TRUE, adjust = "none"), "contrast"),
      tukey = columns(summary(every, infer = TRUE, adjust = "tukey"), "contrast"),
      bonferroni = columns(summary(every, infer = TRUE, adjust = "bonferroni"), "contrast"),
      holm = columns(summary(every, adjust = "holm"), "contrast"),
      bh = columns(summary(every, adjust = "BH"), "contrast"),
      dunnett = columns(summary(one, infer = TRUE, adjust = "mvt"), "contrast"),
      control_holm = columns(summary(one, adjust = "holm"), "contrast")
    )
  })
  labels <- as.data.frame(emmeans(fit, factor))[[1]]
  against_label <- as.character(labels[against])
  set.seed(2)
  joint <- glht(fit, linfct = emm(as.formula(paste("trt.vs.ctrl ~", factor)), ref = against), df = 20)
  tested <- summary(joint, test = adjusted("single-step", abseps = 1e-7, maxpts = 5e6))$test
  write_json(
    list(formula = text, data = file, factor = factor, control = against_label, ddf = by_method,
      joint_20 = list(t = unname(as.numeric(tested$tstat)), p = unname(as.numeric(tested$pvalues)))),
    file.path("means", paste0(case, ".json")), digits = NA, auto_unbox = TRUE, na = "null"
  )
}

golden("balanced", "crossed_balanced.csv", "accuracy ~ approach + (1|seed) + (1|repeat_id)", "approach", 1)
golden("unbalanced", "interaction_unbalanced.csv", "score ~ model * optimizer + (1|seed)", "model", 2)
golden("covariate", "covariate.csv", "accuracy ~ approach * lr + factor(batch) + (1|seed)", "batch", 3)
golden("slopes", "slopes/machines.csv", "score ~ Machine + (Machine | Worker)", "Machine", 1)

set.seed(20250118)
many <- expand.grid(replicate = 1:3, seed = paste0("s", 1:6), model = paste0("m", 1:6))
many$large <- rbinom(nrow(many), 1, 0.3)
many$score <- with(many, 3 * (model == "m4") + 1.5 * (model == "m6") + 0.5 * large + rnorm(6)[as.integer(seed)]
  + rnorm(36, 0, 1)[as.integer(interaction(seed, model))] + rnorm(nrow(many)))
write.csv(many, "means/many.csv", row.names = FALSE, quote = FALSE)
golden("many", "means/many.csv", "score ~ model + large + (1|seed) + (1|model:seed)", "model", 1)
golden("two_values", "means/many.csv", "score ~ model * large + (1|seed) + (1|model:seed)", "model", 6)
