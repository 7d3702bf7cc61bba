-- Wireshark and tshark: MRC over UDP 4791, whose opcodes RoCEv2's dissector does not know. What is not
-- MRC's is left to that one. The fields' places are those of traffic/core/mrc_wire.h.
--
--   tshark -X lua_script:lab/wireshark/mrc.lua -r h1-leaf1.pcap -Y mrc.nack_reason
--
-- What a switch cut to its headers (p4src/trim.p4) is told by mrc.cut: UDP's length is what it was.

local roce = DissectorTable.get("udp.port"):get_dissector(4791)
local mrc = Proto("mrc", "Multipath Reliable Connection")
local OPCODES = {
    [0xc6] = "WRITE First", [0xc7] = "WRITE Middle", [0xc8] = "WRITE Last",
    [0xc9] = "WRITE Last with Immediate", [0xca] = "WRITE Only", [0xcb] = "WRITE Only with Immediate",
    [0xd8] = "Endpoint Request", [0xd9] = "Endpoint Response",
    [0xdc] = "SACK", [0xdd] = "NACK", [0xde] = "Probe Request",
}
local OPERATIONS = {[0] = "Port Status Update", [1] = "EV Probe"}
local UNITS = {[0] = "128 ns", [1] = "1 us"}
local STATES = {[0] = "NONE", [1] = "SKIP_ONCE", [2] = "ALWAYS_SKIP"}
local REASONS = {
    [1] = "TRIMMED", [2] = "TRIMMED_LASTHOP", [6] = "NO_BITMAP", [7] = "NO_PKT_BUFFER",
    [0x0b] = "PSN_OOR_WINDOW", [0x19] = "UNEXP_EVENT",
}
local EP_REQUEST, EP_RESPONSE, SACK, NACK, PROBE = 0xd8, 0xd9, 0xdc, 0xdd, 0xde
local BTH, METH, TSETH, RETH = 12, 4, 4, 16

local field = {
    opcode = ProtoField.uint8("mrc.opcode", "Opcode", base.HEX, OPCODES),
    pad = ProtoField.uint8("mrc.pad", "Pad Count", base.DEC, nil, 0x30),
    qp = ProtoField.uint24("mrc.dqp", "Destination Queue Pair", base.HEX),
    asks = ProtoField.bool("mrc.a", "Acknowledge Request", 8, nil, 0x80),
    again = ProtoField.bool("mrc.rtx", "Retransmitted", 8, nil, 0x20),
    stamped = ProtoField.bool("mrc.ts", "Has a Time Stamp", 8, nil, 0x10),
    psn = ProtoField.uint24("mrc.psn", "PSN"),
    rqmsn = ProtoField.uint16("mrc.rqmsn", "Receive Queue Message Number"),
    msn = ProtoField.uint16("mrc.msn", "Message Number"),
    va = ProtoField.uint64("mrc.va", "Virtual Address", base.HEX),
    rkey = ProtoField.uint32("mrc.rkey", "Remote Key", base.HEX),
    length = ProtoField.uint32("mrc.dma_length", "DMA Length"),
    immediate = ProtoField.uint32("mrc.immediate", "Immediate", base.HEX),
    stamp = ProtoField.uint16("mrc.tx_timestamp", "Time Stamp"),
    unit = ProtoField.uint8("mrc.tsr", "Its Unit", base.DEC, UNITS, 0x80),
    kind = ProtoField.uint8("mrc.ftype", "Kind", base.DEC, nil, 0x0f),
    m = ProtoField.uint16("mrc.m", "Entropy is to be", base.DEC, STATES, 0x0060),
    probed = ProtoField.bool("mrc.pr", "Answers a Probe", 16, nil, 0x0002),
    ack = ProtoField.uint24("mrc.ack_psn", "ACK PSN"),
    probe = ProtoField.uint16("mrc.probe_id", "Probe"),
    entropy = ProtoField.uint32("mrc.entropy", "Entropy", base.HEX),
    source = ProtoField.uint16("mrc.spdcid", "SPDCID"),
    destination = ProtoField.uint16("mrc.dpdcid", "DPDCID"),
    cack = ProtoField.uint24("mrc.cack_psn", "CACK PSN"),
    offset = ProtoField.uint16("mrc.sack_offset", "SACK Offset"),
    map = ProtoField.uint64("mrc.sack_bitmap", "SACK Bitmap", base.HEX),
    early = ProtoField.uint16("mrc.ooo_count", "Out of Order", base.DEC, nil, 0x7fff),
    received = ProtoField.uint24("mrc.rcvd_bytes", "Received (of 256 Bytes)"),
    reason = ProtoField.uint8("mrc.nack_reason", "Reason", base.DEC, REASONS),
    nack = ProtoField.uint24("mrc.nack_psn", "NACK PSN"),
    request = ProtoField.uint16("mrc.ep_id", "Request"),
    operation = ProtoField.uint8("mrc.ep_op", "Operation", base.DEC, OPERATIONS),
    ports = ProtoField.uint32("mrc.port_status_mask", "Ports with a Link", base.HEX),
    cut = ProtoField.bool("mrc.cut", "Cut by a switch"),
}
mrc.fields = field
local udp_length = Field.new("udp.length")

local function stamp(buffer, tree)
    tree:add(field.stamp, buffer(0, 2))
    tree:add(field.unit, buffer(2, 1))
    tree:add(field.kind, buffer(3, 1))
end

local function prologue(buffer, tree)
    tree:add(field.m, buffer(0, 2))
    tree:add(field.source, buffer(8, 2))
    tree:add(field.destination, buffer(10, 2))
end

local function write(buffer, tree, opcode, stamped)
    local before = METH
    if buffer:len() >= METH then
        tree:add(field.rqmsn, buffer(0, 2))
        tree:add(field.msn, buffer(2, 2))
    end
    if stamped then
        if buffer:len() >= METH + TSETH then
            stamp(buffer(METH, TSETH), tree)
        end
        before = METH + TSETH
    end
    if buffer:len() < before + RETH then
        return -- cut off
    end
    tree:add(field.va, buffer(before, 8))
    tree:add(field.rkey, buffer(before + 8, 4))
    tree:add(field.length, buffer(before + 12, 4))
    if (opcode == 0xc9 or opcode == 0xcb) and buffer:len() >= before + RETH + 4 then
        tree:add(field.immediate, buffer(before + RETH, 4))
    end
end

local function acknowledgement(buffer, tree)
    local cack = buffer(13, 3):uint()
    prologue(buffer, tree)
    tree:add(field.probed, buffer(0, 2))
    if buffer(1, 1):bitfield(6, 1) == 1 then
        tree:add(field.probe, buffer(2, 2))
    else
        tree:add(field.ack, buffer(2, 2), (cack + buffer(2, 2):int()) % 16777216)
    end
    tree:add(field.entropy, buffer(4, 4))
    tree:add(field.cack, buffer(13, 3))
    tree:add(field.offset, buffer(18, 2))
    tree:add(field.map, buffer(20, 8))
    tree:add(field.stamp, buffer(28, 2))
    tree:add(field.early, buffer(30, 2))
    tree:add(field.received, buffer(33, 3))
end

local function refusal(buffer, tree)
    prologue(buffer, tree)
    tree:add(field.reason, buffer(2, 1))
    tree:add(field.entropy, buffer(4, 4))
    tree:add(field.nack, buffer(13, 3))
    tree:add(field.stamp, buffer(18, 2))
end

local function question(buffer, tree)
    tree:add(field.probe, buffer(4, 2))
    tree:add(field.source, buffer(8, 2))
    tree:add(field.destination, buffer(10, 2))
    stamp(buffer(12, 4), tree)
end

local function request(buffer, tree, psn)
    tree:add(field.request, psn(1, 2))
    tree:add(field.operation, buffer(1, 1), buffer(1, 1):bitfield(6, 2))
    tree:add(field.ports, buffer(4, 4))
    stamp(buffer(12, 4), tree)
end

local function response(buffer, tree, psn)
    tree:add(field.request, psn(1, 2))
    tree:add(field.operation, buffer(1, 1), buffer(1, 1):bitfield(4, 2))
    tree:add(field.stamp, buffer(28, 2))
end

function mrc.dissector(buffer, packet, tree)
    if buffer:len() < BTH or not OPCODES[buffer(0, 1):uint()] then
        return roce and roce:call(buffer, packet, tree) or 0
    end
    local opcode = buffer(0, 1):uint()
    local part = tree:add(mrc, buffer())
    packet.cols.protocol = "MRC"
    packet.cols.info = OPCODES[opcode]
    part:add(field.opcode, buffer(0, 1))
    part:add(field.pad, buffer(1, 1))
    part:add(field.qp, buffer(5, 3))
    part:add(field.asks, buffer(8, 1))
    part:add(field.again, buffer(8, 1))
    part:add(field.stamped, buffer(8, 1))
    part:add(field.psn, buffer(9, 3))
    local was = udp_length()
    part:add(field.cut, was ~= nil and was.value - 8 > buffer:reported_len())
    if buffer:len() == BTH then
        return BTH
    end
    local behind = buffer(BTH)
    if opcode < EP_REQUEST then
        write(behind, part, opcode, buffer(8, 1):bitfield(3, 1) == 1)
    elseif opcode == EP_REQUEST and behind:len() >= 16 then
        request(behind, part, buffer(9, 3))
    elseif opcode == EP_RESPONSE and behind:len() >= 36 then
        response(behind, part, buffer(9, 3))
    elseif opcode == SACK and behind:len() >= 36 then
        acknowledgement(behind, part)
    elseif opcode == NACK and behind:len() >= 20 then
        refusal(behind, part)
    elseif opcode == PROBE and behind:len() >= 16 then
        question(behind, part)
    end
    return buffer:len()
end

DissectorTable.get("udp.port"):add(4791, mrc)
