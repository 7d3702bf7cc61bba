"""What of OTG's models is there: of each message the fields, of some enumerations the values.

Whatever else is set is refused by its name.
"""

from __future__ import annotations

_OF_PATTERNS = frozenset(
    {
        *("choice", "value", "values", "auto", "increment", "decrement", "random"),
        *("generated", "custom", "start", "step", "count", "min", "max", "seed"),
    }
)
_FIELDS = {
    name: frozenset(fields.split())
    for name, fields in {
        "Config": "ports layer1 captures flows options",
        "ConfigOptions": "port_options",
        "PortOptions": "location_preemption",
        "Port": "name location",
        "Layer1": "name port_names speed mtu promiscuous flow_control",
        "Layer1FlowControl": "directed_address choice ieee_802_1qbb ieee_802_3x",
        "Layer1Ieee8021qbb": "pfc_delay " + " ".join(f"pfc_class_{n}" for n in range(8)),
        "Layer1Ieee8023x": "",
        "Capture": "name port_names packet_size format overwrite",
        "Flow": "name tx_rx packet size rate duration metrics",
        "FlowTxRx": "choice port",
        "FlowPort": "tx_name rx_name rx_names",
        "FlowSize": "choice fixed increment random weight_pairs",
        "FlowSizeIncrement": "start end step",
        "FlowSizeRandom": "min max",
        "FlowSizeWeightPairs": "choice predefined custom",
        "FlowSizeWeightPairsCustom": "size weight",
        "FlowRate": "choice pps bps kbps mbps gbps percentage",
        "FlowDuration": "choice fixed_packets fixed_seconds burst continuous",
        "FlowFixedPackets": "packets gap delay",
        "FlowFixedSeconds": "seconds gap delay",
        "FlowContinuous": "gap delay",
        "FlowBurst": "bursts packets gap inter_burst_gap",
        "FlowDelay": "choice bytes nanoseconds microseconds",
        "FlowDurationInterBurstGap": "choice bytes nanoseconds microseconds",
        "FlowMetrics": "enable loss timestamps latency",
        "FlowLatencyMetrics": "enable mode",
        "FlowHeader": "choice custom ethernet vlan vxlan ipv4 ipv6 pfcpause ethernetpause tcp udp "
        "arp icmp mpls",
        "FlowCustom": "bytes",
        "FlowEthernet": "dst src ether_type pfc_queue",
        "FlowVlan": "priority cfi id tpid",
        "FlowVxlan": "flags reserved0 vni reserved1",
        "FlowIpv4": "version header_length priority total_length identification reserved "
        "dont_fragment more_fragments fragment_offset time_to_live protocol header_checksum "
        "src dst",
        "FlowIpv4Priority": "choice raw tos dscp",
        "FlowIpv4Dscp": "phb ecn",
        "FlowIpv4Tos": "precedence delay throughput reliability monetary unused",
        "FlowIpv6": "version traffic_class flow_label payload_length next_header hop_limit src dst",
        "FlowPfcPause": "dst src ether_type control_op_code class_enable_vector "
        + " ".join(f"pause_class_{n}" for n in range(8)),
        "FlowEthernetPause": "dst src ether_type control_op_code time",
        "FlowTcp": "src_port dst_port seq_num ack_num data_offset ecn_ns ecn_cwr ecn_echo ctl_urg "
        "ctl_ack ctl_psh ctl_rst ctl_syn ctl_fin window checksum",
        "FlowUdp": "src_port dst_port length checksum",
        "FlowArp": "hardware_type protocol_type hardware_length protocol_length operation "
        "sender_hardware_addr sender_protocol_addr target_hardware_addr target_protocol_addr",
        "FlowIcmp": "choice echo",
        "FlowIcmpEcho": "type code checksum identifier sequence_number",
        "FlowMpls": "label traffic_class bottom_of_stack time_to_live",
        "ConfigUpdate": "choice flows",
        "FlowsUpdate": "property_names flows",
        "ConfigAppend": "config_append_list",
        "ConfigAppendResources": "choice flows",
        "ConfigDelete": "config_delete_list",
        "ConfigDeleteResources": "choice flows",
        "ControlState": "choice port protocol traffic",
        "StatePort": "choice link capture",
        "StatePortLink": "port_names state",
        "StatePortCapture": "port_names state",
        "StateTraffic": "choice flow_transmit",
        "StateTrafficFlowTransmit": "flow_names state",
        "StateProtocol": "choice all",
        "StateProtocolAll": "state",
        "MetricsRequest": "choice port flow",
        "PortMetricsRequest": "port_names column_names",
        "FlowMetricsRequest": "flow_names metric_names",
        "StatesRequest": "choice ipv4_neighbors ipv6_neighbors",
        "Neighborsv4StatesRequest": "ethernet_names",
        "Neighborsv6StatesRequest": "ethernet_names",
        "CaptureRequest": "port_name packets",
        "CaptureRequestPackets": "choice all",
    }.items()
}
_VALUES = {
    name: frozenset(values.split())
    for name, values in {
        "FlowTxRx.choice": "port",
        "FlowHeader.choice": "custom ethernet vlan vxlan ipv4 ipv6 pfcpause ethernetpause tcp udp "
        "arp icmp mpls",
        "FlowSizeWeightPairs.predefined": "imix",
        "ConfigUpdate.choice": "flows",
        "StateProtocol.choice": "all",
        "MetricsRequest.choice": "port flow",
        "StatesRequest.choice": "ipv4_neighbors ipv6_neighbors",
        "CaptureRequestPackets.choice": "all",
    }.items()
}


def is_supported(message: str, name: str) -> bool:
    """Whether a field of a message is there, or a value of an enumeration (Message.field)."""
    if "." in message:
        values = _VALUES.get(message)
        return values is None or name in values
    if message.startswith("Pattern"):
        return name in _OF_PATTERNS
    return name in _FIELDS.get(message, ())
