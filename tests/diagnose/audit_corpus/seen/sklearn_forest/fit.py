from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=7)
scaler = StandardScaler().fit(X_train)
forest = RandomForestClassifier(n_estimators=200, max_depth=6)  # open: unseeded-generator
print(cross_val_score(forest, scaler.transform(X_train), y_train, cv=KFold(5)).mean())
forest.fit(scaler.transform(X_train), y_train)
print("accuracy", accuracy_score(y_test, forest.predict(scaler.transform(X_test))))
