"""Policy gradients on a pole."""

import argparse
from collections import deque

import gymnasium as gym
import numpy as np
import torch  # open: thread-count
import torch.nn as nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
args = parser.parse_args()

env = gym.make("CartPole-v1")
torch.manual_seed(args.seed)
policy = nn.Sequential(nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2), nn.Softmax(-1))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
recent = deque(maxlen=100)
for episode in range(500):
    state, _ = env.reset()  # open: unseeded-generator
    log_probs, rewards, done = [], [], False
    while not done:
        chosen = Categorical(policy(torch.from_numpy(state).float()))
        action = chosen.sample()
        log_probs.append(chosen.log_prob(action))
        state, reward, terminated, truncated, _ = env.step(action.item())
        rewards.append(reward)
        done = terminated or truncated
    returns, total = deque(), 0.0
    for reward in reversed(rewards):
        total = reward + args.gamma * total
        returns.appendleft(total)
    returns = torch.tensor(returns)
    loss = -(torch.stack(log_probs) * (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(sum(rewards))
print(np.mean(recent))
