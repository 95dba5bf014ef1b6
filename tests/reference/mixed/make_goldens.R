# Makes the reference fits of tests/analysis/mixed from simulated data: <case>.csv and <case>.json.
# Needs R with lme4, lmerTest, pbkrtest, emmeans and jsonlite. Run in this folder: Rscript make_goldens.R
suppressMessages({
  library(lme4); library(lmerTest); library(emmeans); library(jsonlite)
})
emm_options(lmerTest.limit = 1e5, pbkrtest.limit = 1e5, msg.nesting = FALSE, msg.interaction = FALSE)

named <- function(table) {
  table <- as.data.frame(table)
  cbind(name = rownames(table), data.frame(lapply(table, as.numeric), check.names = FALSE))
}

# `factors`: whose level differences are compared, in the emmeans way with Satterthwaite degrees of freedom.
golden <- function(case, data, formula, factors) {
  write.csv(data, paste0(case, ".csv"), row.names = FALSE, quote = FALSE)
  data <- read.csv(paste0(case, ".csv"))
  text <- formula
  formula <- as.formula(formula)
  control <- lmerControl(
    optimizer = "nloptwrap", optCtrl = list(xtol_abs = 1e-12, xtol_rel = 1e-12, ftol_abs = 1e-14, maxeval = 1e5)
  )
  fit <- lmer(formula, data, control = control)
  ml <- lmer(formula, data, REML = FALSE, control = control)
  pairs <- do.call(rbind, lapply(factors, function(factor) {
    means <- emmeans(fit, factor, lmer.df = "satterthwaite")
    table <- as.data.frame(summary(pairs(means), infer = c(TRUE, TRUE), adjust = "none"))
    names(table) <- c("contrast", "estimate", "se", "df", "lower", "upper", "t", "p")
    table$holm <- as.data.frame(summary(pairs(means), adjust = "holm"))$p.value
    cbind(factor = factor, table)
  }))
  satterthwaite <- coef(summary(fit))
  kenward_roger <- coef(summary(fit, ddf = "Kenward-Roger"))
  result <- list(
    formula = text, theta = unname(getME(fit, "theta")), theta_names = names(getME(fit, "cnms")),
    loglik_reml = as.numeric(logLik(fit)), loglik_ml = as.numeric(logLik(ml)), aic = AIC(fit), aic_ml = AIC(ml),
    singular = isSingular(fit), sigma = sigma(fit),
    random = as.data.frame(VarCorr(fit))[, c("grp", "vcov", "sdcor")],
    satterthwaite = named(satterthwaite), kenward_roger = named(kenward_roger),
    anova = named(anova(fit)), anova_kr = named(anova(fit, ddf = "Kenward-Roger")),
    satterthwaite_ml = named(coef(summary(ml))),
    ranova = named(ranova(fit))[-1, ], differences = pairs
  )
  write_json(result, paste0(case, ".json"), digits = NA, auto_unbox = TRUE, na = "null")
}

set.seed(20240611)
effect <- function(codes, sd) rnorm(max(codes), 0, sd)[codes]

crossed <- expand.grid(repeat_id = 1:4, seed = 1:6, approach = c("base", "new", "wide"))
crossed$accuracy <- with(crossed, 0.9 + 0.01 * (approach == "new") + effect(seed, 0.01) + effect(repeat_id, 0.004)
  + rnorm(nrow(crossed), 0, 0.008))
golden("crossed_balanced", crossed, "accuracy ~ approach + (1|seed) + (1|repeat_id)", "approach")

nested <- expand.grid(run = 1:5, seed = 1:8, approach = c("base", "new"))
nested$accuracy <- with(nested, 70 + (approach == "new") + effect(seed, 1.5)
  + effect((seed - 1) * 5 + run, 1) + rnorm(nrow(nested), 0, 0.7))
nested <- nested[-sample(nrow(nested), 17), ]
golden("nested_unbalanced", nested, "accuracy ~ approach + (1|seed/run)", "approach")

singular <- expand.grid(repeat_id = 1:5, seed = 1:5, approach = c("a", "b", "c"))
singular$loss <- with(singular, 2 + 0.3 * (approach == "b") + effect(seed, 0.4) + rnorm(nrow(singular), 0, 0.5))
singular$loss <- singular$loss - ave(singular$loss, singular$repeat_id) + mean(singular$loss)
golden("singular", singular[-c(3, 17, 40), ], "loss ~ approach + (1|seed) + (1|repeat_id)", "approach")

two <- expand.grid(replicate = 1:4, seed = 1:5, optimizer = c("adam", "sgd"), model = c("cnn", "mlp", "vit"))
two$score <- with(two, 10 + 2 * (model == "vit") - (optimizer == "sgd") + 1.5 * (model == "mlp" & optimizer == "sgd")
  + effect(seed, 1) + rnorm(nrow(two)))
unbalanced <- two[-sample(nrow(two), 37), ]
golden("interaction_unbalanced", unbalanced, "score ~ model * optimizer + (1|seed)", c("model", "optimizer"))

empty <- two[!(two$model == "vit" & two$optimizer == "sgd"), ]
golden("empty_cell", empty[-sample(nrow(empty), 20), ], "score ~ model * optimizer + (1|seed)", c("model", "optimizer"))

covariate <- expand.grid(seed = 1:12, approach = c("base", "new"), batch = 1:3)
covariate$lr <- round(runif(nrow(covariate), 0.1, 1), 3)
covariate$accuracy <- with(covariate, 80 + 3 * lr + (approach == "new") * (1 - 2 * lr) + effect(seed, 1.2)
  + effect(batch, 0.8) + rnorm(nrow(covariate), 0, 1.1))
golden("covariate", covariate, "accuracy ~ approach * lr + (1|seed) + (1|batch)", "approach")

sizes <- expand.grid(seed = 1:7, size = c(16, 32, 128), fold = 1:3)
sizes$accuracy <- with(sizes, log(size) + effect(seed, 0.5) + effect((seed - 1) * 3 + fold, 0.4)
  + rnorm(nrow(sizes), 0, 0.3))
golden("no_intercept", sizes[-c(1, 9, 30), ], "accuracy ~ 0 + factor(size) + (1|seed) + (1|seed:fold)", "size")
