# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # A study: when should a switch mark?
#
# Two hosts send to a third with DCQCN. The thresholds of the ECN ramp decide between pauses (marks
# that come too late) and an idle link (marks that come too early).

# %%
import closlab

base = {
    "name": "two-to-one",
    "topology": {"kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 3},
    "buffer": {"bytes": "1MB"},
    "transport": {"cc": "dcqcn"},
    "traffic": {"kind": "incast", "receiver": "h1", "senders": 2, "bytes": "1MB"},
    "ecn": {"kmin": "5KB", "kmax": "400KB"},
}
sweep = closlab.sweep(base, {"ecn.kmax": ["20KB", "400KB"], "ecn.pmax": [0.02, 1]})
sweep

# %% [markdown]
# A row a run, with all figures by their names in `result.json`.

# %%
rows = closlab.records(sweep.table)
ideal_ns = 2 * 1_000_000 * 8 / 100
print(f"{'kmax':>7} {'pmax':>5} {'pauses':>7} {'time':>6}")
for row in rows:
    time = row["duration_ns"] / ideal_ns
    print(f"{row['ecn.kmax']:>7} {row['ecn.pmax']:>5} {row['pfc.xoff_frames']:>7} {time:>6.2f}")

# %% [markdown]
# A picture says where the compromise is; with matplotlib, if it is there.

# %%
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("for the picture:  pip install matplotlib")
else:
    figure, axes = plt.subplots()
    for kmax in dict.fromkeys(row["ecn.kmax"] for row in rows):
        some = [row for row in rows if row["ecn.kmax"] == kmax]
        times = [row["duration_ns"] / ideal_ns for row in some]
        axes.plot([row["pfc.xoff_frames"] for row in some], times, "o-", label=f"kmax {kmax}")
    axes.set_xlabel("pause frames")
    axes.set_ylabel("time / ideal time")
    axes.legend()
    figure.savefig("study.png")

# %%
assert len(rows) == 4 and not sweep.failures
