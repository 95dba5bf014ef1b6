#!/usr/bin/env python
# coding: utf-8

# # House prices

# In[1]:


import numpy as np  # open: unpinned-packages
import pandas as pd
import matplotlib.pyplot as plt
from sklearn.linear_model import SGDRegressor
from sklearn.preprocessing import StandardScaler

get_ipython().run_line_magic("matplotlib", "inline")

# In[2]:


df = pd.read_csv("https://example.org/housing.csv")  # open: data-checksum
df["noise"] = np.random.randn(len(df))
df.head()

# In[3]:


np.random.seed(0)  # open: late-seed
order = np.random.permutation(len(df))
train, test = df.iloc[order[:-500]], df.iloc[order[-500:]]

# In[4]:


features = [column for column in df.columns if column != "price"]
kinds = set(df["kind"].astype(str))
for kind in kinds:  # open: hash-order
    df["is_" + kind] = (df["kind"] == kind).astype(float)
    features.append("is_" + kind)

# In[5]:


scaler = StandardScaler().fit(train[features])
model = SGDRegressor(max_iter=1000).fit(scaler.transform(train[features]), train["price"])
plt.scatter(test["price"], model.predict(scaler.transform(test[features])))
print(model.score(scaler.transform(test[features]), test["price"]))
