"""Linear mixed models with random intercepts and slopes: own REML and ML solver, tests as lmerTest and emmeans have.

formula ─▶ columns ─▶ design ─▶ products ─▶ deviance or slopes ─▶ minimise ─▶ fit ─▶ model ─▶ checks
"""
