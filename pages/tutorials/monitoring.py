# %% [markdown]
# # Monitoring a model in use
#
# *Data: simulated days of 200 predictions; after 30 days the data change and the model becomes over-confident.* A test at 5% on every day
# raises a false alarm about every three weeks. A monitor may be checked after every batch, and the probability that it ever raises a false
# alarm stays below its level.

# %%
import numpy as np

import calibrary as cal
from calibrary import plots


def day(rng, slope=1.0, n=200):
    """Predictions and outcomes; a slope below 1 makes predictions too extreme."""
    c = rng.beta(0.8, 0.8, n)
    odds = slope * np.log(c / (1 - c))
    return (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int), c


# %% [markdown]
# ## How often does a daily test raise a false alarm?

# %%
rng = np.random.default_rng(1)
alarms = [cal.test("spiegelhalter", *day(rng)).pvalue < 0.05 for _ in range(60)]
print(f"a calibrated model, tested daily at 5%: false alarms in 60 days: {sum(alarms)} (3 expected)")

# %% [markdown]
# ## A monitor
#
# The monitor keeps 342 numbers, for any number of rows. The probability that it *ever* raises an alarm on calibrated predictions is at most
# `alpha`.

# %%
rng, monitor = np.random.default_rng(1), cal.calibration_monitor(alpha=0.05)
for _ in range(60):
    monitor.update(*day(rng))
print("calibrated for 60 days:", monitor.words)

# %% [markdown]
# To monitor for drift, start a new monitor each period: while predictions are calibrated the evidence falls below 1, and after a change it
# would first have to rise to 1 again.

# %%
rng = np.random.default_rng(2)
for number in range(1, 41):
    if number % 10 == 1:
        monitor = cal.calibration_monitor(alpha=0.05 / 4)  # four periods share the 5%
    monitor.update(*day(rng, slope=1.0 if number <= 30 else 0.5))
    if monitor.alarm:
        print(f"day {number}: {monitor.words}")
        break

# %%
plots.plot_monitor(monitor)

# %% [markdown]
# The curve is the evidence against calibration since day 31, on a logarithmic scale; the alarm is where it crosses the line.
