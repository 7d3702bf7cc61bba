# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # First steps
#
# Seven hosts write to one, at once. What do pause frames do for them?

# %%
import closlab

run = closlab.run("incast")
run

# %% [markdown]
# In a notebook a run that is a cell's last word shows its report. All of its figures have names:

# %%
result = run.result
print(result.drops.total, "packets lost,", result.pfc.xoff_frames, "pause frames")
print(f"all there after {result.duration_ns / 1e6:.2f} ms")

# %% [markdown]
# The same without pause frames. What is lost has to be sent again, after a time-out if need be.

# %%
off = closlab.run("incast", set={"pfc.enabled": False, "transport.timeout": 10})
print(off.result.drops.total, "packets lost,", off.result.roce.retransmitted_packets, "sent again")
print(f"all there after {off.result.duration_ns / 1e6:.2f} ms")

# %% [markdown]
# Side by side:

# %%
both = closlab.compare(off, run)
for row in closlab.records(both.table)[:8]:
    print(row)

# %% [markdown]
# And a scenario of your own. Keys that are not given have what `closlab explain` says.

# %%
mine = closlab.scenario(
    name="three-to-one",
    topology={"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
    traffic={"kind": "incast", "receiver": "h1", "senders": 3, "bytes": "1MB"},
)
times = [flow["fct_ns"] / 1e3 for flow in closlab.records(closlab.run(mine).flows)]
print([f"{time:.0f} us" for time in times])

# %%
assert result.drops.total == 0 and off.result.drops.total > 0
assert len(times) == 3
