-- Wireshark and tshark: scale-up Ethernet: SUNH in place of IP (p4src/sunh.p4), the reliability header
-- behind it, and the commands that a PDU packs (traffic/core/sue_wire.h). No EtherType is assigned:
--
--   tshark -X lua_script:lab/wireshark/sue.lua -r h1-leaf1.pcap -Y 'sue.op == 1' -T fields \
--       -e sunh.src -e sue.apsn
--   tshark -X lua_script:lab/wireshark/sue.lua -r h1-leaf1.pcap -T fields -e sue.commands

local sunh, sue = Proto("sunh", "Scale-Up Network Header"), Proto("sue", "Scale-Up Ethernet")
local OPS = { [0] = "ACK", [1] = "NACK" }
local at_network = {
    class = ProtoField.uint8("sunh.dscp", "DSCP", base.DEC, nil, 0xFC),
    ecn = ProtoField.uint8("sunh.ecn", "ECN", base.DEC, nil, 0x03),
    next_header = ProtoField.uint8("sunh.nh", "Next Header"),
    hops = ProtoField.uint16("sunh.hlim", "Hop Limit", base.DEC, nil, 0xF000),
    label = ProtoField.uint16("sunh.label", "Flow Label", base.HEX, nil, 0x0FFF),
    source = ProtoField.uint16("sunh.src", "Source", base.HEX),
    destination = ProtoField.uint16("sunh.dst", "Destination", base.HEX),
}
local field = {
    version = ProtoField.uint8("sue.version", "Version", base.DEC, nil, 0xC0),
    op = ProtoField.uint8("sue.op", "Op", base.DEC, OPS, 0x30),
    xpu = ProtoField.uint16("sue.xpu", "XPU", base.DEC, nil, 0x03FF),
    npsn = ProtoField.uint16("sue.npsn", "NPSN"),
    channel = ProtoField.uint8("sue.vc", "Virtual Channel", base.DEC, nil, 0xC0),
    partition = ProtoField.uint16("sue.partition", "Partition", base.DEC, nil, 0x03FF),
    apsn = ProtoField.uint16("sue.apsn", "APSN"),
    commands = ProtoField.uint8("sue.commands", "Commands"),
    size = ProtoField.uint16("sue.size", "Bytes behind this word"),
    command = ProtoField.bytes("sue.command", "Command"),
    last = ProtoField.bool("sue.last", "Last of its message", 8, nil, 0x01),
    length = ProtoField.uint16("sue.length", "Bytes stored"),
    key = ProtoField.uint32("sue.key", "Key", base.HEX),
    offset = ProtoField.uint32("sue.offset", "Offset"),
    crc = ProtoField.uint32("sue.rcrc", "R-CRC", base.HEX),
}
sunh.fields, sue.fields = at_network, field

local ETHERTYPE, NEXT_HEADER = 0x885B, 253
local SUNH, RH, PDU, COMMAND, CRC = 8, 8, 4, 12, 4

function sue.dissector(buffer, packet, tree)
    if buffer:len() < RH + PDU then
        return 0
    end
    local part = tree:add(sue, buffer())
    packet.cols.protocol = "SUE"
    part:add(field.version, buffer(0, 1))
    part:add(field.op, buffer(0, 1))
    part:add(field.xpu, buffer(0, 2))
    part:add(field.npsn, buffer(2, 2))
    part:add(field.channel, buffer(4, 1))
    part:add(field.partition, buffer(4, 2))
    part:add(field.apsn, buffer(6, 2))
    local pdu = buffer(RH)
    local commands, size = pdu(0, 1):uint(), pdu(2, 2):uint()
    part:add(field.commands, pdu(0, 1))
    part:add(field.size, pdu(2, 2))
    packet.cols.info = string.format("%s, PSN %d, answers %d: %d stores",
        OPS[buffer(0, 1):bitfield(2, 2)] or "?", buffer(2, 2):uint(), buffer(6, 2):uint(), commands)
    for number = 0, commands - 1 do
        local at = PDU + number * COMMAND
        if pdu:len() < at + COMMAND then
            break
        end
        local one = part:add(field.command, pdu(at, COMMAND))
        one:add(field.last, pdu(at + 1, 1))
        one:add(field.length, pdu(at + 2, 2))
        one:add(field.key, pdu(at + 4, 4))
        one:add(field.offset, pdu(at + 8, 4))
    end
    if pdu:len() >= PDU + size + CRC then
        part:add(field.crc, pdu(PDU + size, CRC))
    end
    return buffer:len()
end

function sunh.dissector(buffer, packet, tree)
    if buffer:len() < SUNH then
        return 0
    end
    local part = tree:add(sunh, buffer(0, SUNH))
    packet.cols.protocol = "SUNH"
    part:add(at_network.class, buffer(0, 1))
    part:add(at_network.ecn, buffer(0, 1))
    part:add(at_network.next_header, buffer(1, 1))
    part:add(at_network.hops, buffer(2, 2))
    part:add(at_network.label, buffer(2, 2))
    part:add(at_network.source, buffer(4, 2))
    part:add(at_network.destination, buffer(6, 2))
    if buffer(1, 1):uint() == NEXT_HEADER and buffer:len() > SUNH then
        sue.dissector(buffer(SUNH):tvb(), packet, tree)
    end
    return buffer:len()
end

DissectorTable.get("ethertype"):add(ETHERTYPE, sunh)
