"""A SKU's folder as SONiC has them, small and our own: ports, rows and templates."""

from __future__ import annotations

from pathlib import Path

PORTS = """# name lanes alias index speed
Ethernet0  0,1,2,3   et1  1  100000
Ethernet4  4,5,6,7   et2  2  100000
Ethernet8  8,9       et3  3  25000
"""
ROWS = """# speed cable size xon xoff threshold xon_offset
 25000  40m  1248  2288  40960   0  2288
100000  40m  1248  2288  61440   0  2288
100000  300m 1248  2288  70000   0  2288
"""
_BUFFERS = """{%- set default_cable = '40m' %}{%- include 'buffers_config.j2' %}"""
_BUFFERS_CONFIG = """{
"CABLE_LENGTH": {"AZURE": {
{%- for port in PORT %}"{{ port }}": "{{ default_cable }}"{% if not loop.last %},{% endif %}
{% endfor %}}},
"BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic",
    "size": "10000000", "xoff": "4000000"}},
"BUFFER_PROFILE": {"ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0",
    "dynamic_th": "3"}},
"BUFFER_PG": {
{%- for port in PORT %}"{{ port }}|0": {"profile": "ingress_lossy_profile"}
{%- if not loop.last %},{% endif %}{% endfor %}}
}
"""
_QOS = """{%- set names = [] %}{%- for port in PORT %}{%- if names.append(port) %}{%- endif %}
{%- endfor %}{%- if names | sort_by_port_index %}{%- endif %}
{%- if template_exists('qos_config.j2') %}{%- include 'qos_config.j2' %}{%- endif %}
"""
_QOS_CONFIG = """{
"DSCP_TO_TC_MAP": {"AZURE": {"3": "3", "4": "4", "48": "6", "0": "1"}},
"TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {"1": "0", "3": "3", "4": "4", "6": "0"}},
"TC_TO_QUEUE_MAP": {"AZURE": {"1": "1", "3": "3", "4": "4", "6": "6"}},
"SCHEDULER": {"scheduler.0": {"type": "DWRR", "weight": "15"}},
"WRED_PROFILE": {"MARKS": {"ecn": "ecn_all", "wred_green_enable": "true",
    "green_min_threshold": "200000", "green_max_threshold": "800000",
    "green_drop_probability": "5"}},
"PORT_QOS_MAP": {
{%- for port in names %}"{{ port }}": {"dscp_to_tc_map": "AZURE", "tc_to_pg_map": "AZURE",
    "tc_to_queue_map": "AZURE", "pfc_enable": "3,4", "pfcwd_sw_enable": "3,4"
    {%- if asic_type == 'mellanox' %}, "pfc_to_pg_map": "AZURE"{% endif %}}
{%- if not loop.last %},{% endif %}{% endfor %}},
"QUEUE": {
{%- for port in names %}{% for queue in (3, 4, 8) %}"{{ port }}|{{ queue }}": {
    "scheduler": "scheduler.0"{% if queue < 8 %}, "wred_profile": "MARKS"{% endif %}}
{%- if not loop.last %},{% endif %}{% endfor %}{% if not loop.last %},{% endif %}{% endfor %}}
}
"""


def write_sku(folder: Path) -> Path:
    """The folder of a SKU, with what its templates include two folders above."""
    sku = folder / "device" / "maker" / "platform" / "SKU-32"
    common = folder / "files" / "build_templates"
    sku.mkdir(parents=True)
    common.mkdir(parents=True)
    (sku.parent / "platform_asic").write_text("broadcom\n")
    for place, name, text in (
        (sku, "port_config.ini", PORTS), (sku, "pg_profile_lookup.ini", ROWS),
        (sku, "buffers.json.j2", _BUFFERS), (sku, "qos.json.j2", _QOS),
        (common, "buffers_config.j2", _BUFFERS_CONFIG), (common, "qos_config.j2", _QOS_CONFIG),
    ):  # fmt: skip
        (place / name).write_text(text)
    return sku
