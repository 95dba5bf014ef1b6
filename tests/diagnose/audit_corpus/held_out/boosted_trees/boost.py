import lightgbm as lgb
import pandas as pd
import xgboost as xgb
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

frame = pd.read_csv("churn.csv").sample(frac=1)  # open: data-checksum, unseeded-generator
target = frame.pop("churned")
x_train, x_test, y_train, y_test = train_test_split(frame, target, test_size=0.25)

booster = xgb.XGBClassifier(n_estimators=300, subsample=0.8, random_state=0)
booster.fit(x_train, y_train)
print("xgboost", roc_auc_score(y_test, booster.predict_proba(x_test)[:, 1]))

light = lgb.LGBMClassifier(n_estimators=300, subsample=0.8, subsample_freq=1)
light.fit(x_train, y_train)
print("lightgbm", roc_auc_score(y_test, light.predict_proba(x_test)[:, 1]))
