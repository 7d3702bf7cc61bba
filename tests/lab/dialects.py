"""A drawn fabric with some of its switches told in other systems' words, and its hosts' adapters.

Written from what the makers document of their commands, without what reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab.config_folders import LOSSLESS, Drawn

Tables = dict[str, Any]


def mixed(drawn: Drawn, folder: Path, eos: str = "tor0", nvue: str = "tor1") -> Path:
    """A folder: one switch by EOS' text, one by NVUE's and FRR's, the others by SONiC's."""
    swp = {port: f"swp{int(port[8:]) // 4 + 1}" for port in drawn.switches[nvue]["PORT"]}
    for name, tables in drawn.switches.items():
        for peer in tables["DEVICE_NEIGHBOR"].values():
            if name != nvue and peer["name"] == nvue:
                peer["port"] = swp[peer["port"]]
    others = {name: of for name, of in drawn.switches.items() if name not in (eos, nvue)}
    Drawn(drawn.rng, others).write(folder)
    (folder / f"{eos}.eos").write_text(as_eos(drawn.switches[eos]))
    (folder / f"{eos}.lldp").write_text(eos_lldp(drawn.switches[eos]))
    (folder / f"{nvue}.yaml").write_text(as_nvue(drawn.switches[nvue], swp))
    (folder / f"{nvue}.frr").write_text(as_frr(drawn.switches[nvue], swp))
    (folder / f"{nvue}.lldp").write_text(nvue_lldp(drawn.switches[nvue], swp))
    for tables in drawn.switches.values():
        for peer in tables["DEVICE_NEIGHBOR"].values():
            if peer["name"].startswith("gpu"):
                for kind, text in adapter().items():
                    (folder / f"{peer['name']}.{kind}").write_text(text)
    return folder


def _gbps(entry: Tables) -> int:
    return int(entry["speed"]) // 1000


def as_eos(tables: Tables) -> str:
    """`show running-config` of a switch, with a profile that all ports have."""
    about = tables["DEVICE_METADATA"]["localhost"]
    wred = tables["WRED_PROFILE"]["AZURE_LOSSLESS"]
    lines = [f"hostname {about['hostname']}", "!", "ntp server 192.0.2.1", "!"]
    by_tc: dict[str, list[str]] = {}
    for dscp, tc in tables["DSCP_TO_TC_MAP"]["AZURE"].items():
        by_tc.setdefault(tc, []).append(dscp)
    lines += [f"qos map dscp {' '.join(of)} to traffic-class {tc}" for tc, of in by_tc.items()]
    lines += ["!", "qos profile roce", "   qos trust dscp"]
    for queue in range(7):
        weight = 15 if queue in LOSSLESS else 14
        lines += ["   !", f"   tx-queue {queue}", "      no priority",
                  f"      bandwidth percent {weight}"]  # fmt: skip
        if queue in LOSSLESS:
            low, high = (int(wred[f"green_{end}_threshold"]) // 1000 for end in ("min", "max"))
            lines.append(
                f"      random-detect ecn minimum-threshold {low} kbytes maximum-threshold {high} "
                f"kbytes max-mark-probability {wred['green_drop_probability']}"
            )
    lines += ["   !", "   priority-flow-control on"]
    lines += [f"   priority-flow-control priority {p} no-drop" for p in LOSSLESS]
    lines += ["   priority-flow-control pause watchdog",
              "   priority-flow-control pause watchdog port timer timeout 0.2 polling-interval "
              "auto recovery-time 0.2 forced",
              "   priority-flow-control pause watchdog port action drop"]  # fmt: skip
    for port, entry in tables["PORT"].items():
        lines += ["!", f"interface {port}", f"   speed forced {_gbps(entry)}gfull",
                  f"   mtu {entry['mtu']}", "   no switchport",
                  "   service-profile roce"]  # fmt: skip
    lines += ["!", f"router bgp {about['bgp_asn']}", "   neighbor fabric peer group"]
    for port, peer in tables["DEVICE_NEIGHBOR"].items():
        if not peer["name"].startswith("gpu"):
            lines.append(f"   neighbor interface {port} peer-group fabric remote-as 65100")
    return "\n".join([*lines, "!", "end", ""])


def eos_lldp(tables: Tables) -> str:
    """`show lldp neighbors` of a switch."""
    rows = [f"{port.replace('Ethernet', 'Et'):<14}{peer['name']:<25}{peer['port']:<20}120"
            for port, peer in tables["DEVICE_NEIGHBOR"].items()]  # fmt: skip
    return "\n".join(["Port          Neighbor Device ID       Neighbor Port ID    TTL", *rows, ""])


def as_nvue(tables: Tables, swp: dict[str, str]) -> str:
    """A switch's startup.yaml; BGP is FRR's."""
    about = tables["DEVICE_METADATA"]["localhost"]
    wred = tables["WRED_PROFILE"]["AZURE_LOSSLESS"]
    lines = ["- header:", "    model: SN5600", "- set:", "    system:",
             f"      hostname: {about['hostname']}", "    interface:"]  # fmt: skip
    for port, entry in tables["PORT"].items():
        metres = tables["CABLE_LENGTH"]["AZURE"][port].rstrip("m")
        lines += [f"      {swp[port]}:", "        type: swp", "        link:",
                  f"          speed: {_gbps(entry)}G", f"          mtu: {entry['mtu']}",
                  "        qos:", "          pfc-watchdog:", "            state: enable",
                  "          congestion-control:", "            profile: roce",
                  f"          pfc:\n            profile: m{metres}"]  # fmt: skip
    lines += ["    qos:", "      mapping:", "        default-global:", "          trust: l3",
              "          dscp:"]  # fmt: skip
    for dscp, tc in tables["DSCP_TO_TC_MAP"]["AZURE"].items():
        lines += [f"            '{dscp}':", f"              switch-priority: {tc}"]
    lines += ["      pfc-watchdog:", "        polling-interval: 100", "        robustness: 2",
              "      congestion-control:", "        roce:", "          traffic-class:"]  # fmt: skip
    for queue in LOSSLESS:
        lines += [f"            '{queue}':", "              ecn: enable",
                  f"              min-threshold: {wred['green_min_threshold']}",
                  f"              max-threshold: {wred['green_max_threshold']}",
                  f"              probability: {wred['green_drop_probability']}"]  # fmt: skip
    lines.append("      pfc:")
    for length in sorted(set(tables["CABLE_LENGTH"]["AZURE"].values())):
        lines += [f"        m{length.rstrip('m')}:", f"          cable-length: {length[:-1]}",
                  "          switch-priority:"]  # fmt: skip
        lines += [f"            '{p}': {{}}" for p in LOSSLESS]
    return "\n".join([*lines, ""])


def as_frr(tables: Tables, swp: dict[str, str]) -> str:
    """A switch's frr.conf, unnumbered."""
    about = tables["DEVICE_METADATA"]["localhost"]
    lines = ["frr version 10.1", "frr defaults datacenter", f"hostname {about['hostname']}", "!",
             f"router bgp {about['bgp_asn']}", " bgp router-id 192.0.2.7",
             " neighbor fabric peer-group", " neighbor fabric remote-as external"]  # fmt: skip
    lines += [f" neighbor {swp[port]} interface peer-group fabric"
              for port, peer in tables["DEVICE_NEIGHBOR"].items()
              if not peer["name"].startswith("gpu")]  # fmt: skip
    lines += [" !", " address-family ipv4 unicast", "  network 10.1.0.0/24",
              " exit-address-family", "exit", "!", "end", ""]  # fmt: skip
    return "\n".join(lines)


def nvue_lldp(tables: Tables, swp: dict[str, str]) -> str:
    """`net show lldp` of a switch."""
    rows = [f"{swp[port]:<11}{_gbps(tables['PORT'][port])}G     Default  {peer['name']:<15}"
            f"{peer['port']}" for port, peer in tables["DEVICE_NEIGHBOR"].items()]  # fmt: skip
    return "\n".join(["LocalPort  Speed  Mode     RemoteHost     RemotePort", *rows, ""])


def adapter(
    *, name: str = "eth0", trust: str = "dscp", pfc: tuple[int, ...] = LOSSLESS, tos: int = 106,
    np: int = 1, rp: int = 1, cnp_dscp: int = 48,
) -> dict[str, str]:  # fmt: skip
    """What a host's tools print, by kind; ToS 106 is DSCP 26 and a packet that may be marked."""
    rows = ["DCBX mode: OS controlled", f"Priority trust state: {trust}"]
    if trust == "dscp":
        rows.append("dscp2prio mapping:")
        rows += [f"\tprio:{p} dscp:{''.join(f'{d:02},' for d in range(8 * p + 7, 8 * p - 1, -1))}"
                 for p in range(8)]  # fmt: skip
    rows += ["Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,max_buffer_size=1027728",
             "Cable len: 7", "PFC configuration:", "\tpriority    0   1   2   3   4   5   6   7",
             "\tenabled     " + "   ".join("1" if p in pfc else "0" for p in range(8)) + "   ",
             "\tbuffer      0   0   0   1   1   0   0   0   "]  # fmt: skip
    for tc in range(8):
        rows += [f"tc: {tc} ratelimit: unlimited, tsa: vendor", f"\t priority:  {tc}"]
    at = f"/sys/class/net/{name}/ecn"
    tree = [f"{at}/roce_{which}/enable/{p}:{value}"
            for which, value in (("np", np), ("rp", rp)) for p in range(8)]  # fmt: skip
    tree += [f"{at}/roce_np/cnp_dscp:{cnp_dscp}", f"{at}/roce_rp/rpg_ai_rate:5"]
    return {"mlnx_qos": "\n".join([f"# mlnx_qos -i {name}", *rows, ""]),
            "cma_roce_tos": f"{tos}\n", "ecn": "\n".join([*tree, ""])}  # fmt: skip
