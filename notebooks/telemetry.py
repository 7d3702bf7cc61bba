# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Where did packets wait?
#
# Six hosts write to h1, and h8 writes to h2, to which nobody else does. Its message takes several
# times as long as alone. In-band telemetry says where its packets waited.

# %%
import closlab

run = closlab.run("victim-flow", set={"int.share": 0.1})
telemetry = run.result.telemetry
assert telemetry is not None
print(telemetry.reports, "packets told of their way")

# %% [markdown]
# Every switch said how long packets were there and how long its queue was.

# %%
print(f"{'switch':>8} {'packets':>8} {'half wait':>10} {'1 % wait':>10}")
for name, hop in sorted(telemetry.by_switch.items()):
    if hop.latency_ns:
        print(
            f"{name:>8} {hop.count:>8} {hop.latency_ns.p50:>7.0f} ns {hop.latency_ns.p99:>7.0f} ns"
        )

# %% [markdown]
# The bottleneck is h1's port at leaf1, and yet packets wait at leaf2: held there by pauses. Who was
# paused, and for how long?

# %%
paused = sorted(run.result.pfc.by_link.items(), key=lambda each: -each[1].paused_ns)
for link, pause in paused[:5]:
    print(f"{link:>16} {pause.paused_ns / 1e3:8.0f} us")

# %% [markdown]
# The victim's message, and the longest queue over time:

# %%
victim = next(f for f in closlab.records(run.flows) if (f["src"], f["dst"]) == ("h8", "h2"))
print(f"h8 to h2: {victim['slowdown']} times as long as alone")

# %%
waits = {name: hop.latency_ns.p50 for name, hop in telemetry.by_switch.items() if hop.latency_ns}
assert max(waits, key=waits.__getitem__) == "leaf2"
assert victim["slowdown"] > 3
