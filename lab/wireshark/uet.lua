-- Wireshark and tshark: Ultra Ethernet Transport over UDP 4793, where they do not know it themselves
-- (from 4.6 on they do, and this stands back). Fields bear their names there.
--
--   tshark -X lua_script:lab/wireshark/uet.lua -r h1-leaf1.pcap -Y uet.pds.nack_code
--
-- What a switch cut to its headers (p4src/trim.p4) is told by uet.cut: UDP's length is what it was.

local known, theirs = pcall(Dissector.get, "uet")
if known and theirs then
    return
end

local uet = Proto("uet", "Ultra Ethernet Transport")
local TYPES = {
    [1] = "Encrypted", [2] = "RUD Request", [3] = "ROD Request", [4] = "RUDI Request", [5] = "RUDI Response",
    [6] = "UUD Request", [7] = "ACK", [8] = "ACK CC", [10] = "NACK", [11] = "Control",
    [13] = "RUD CC Request", [14] = "ROD CC Request",
}
local CONTROLS = {[6] = "Probe", [7] = "Credit", [8] = "Request for Credit"}
local CODES = {[1] = "TRIMMED", [2] = "TRIMMED_LAST_HOP", [13] = "ROD_OOO"}
local TSS, ICV_BYTES = 1, 16
local RUDI_REQ, RUDI_RESP, UUD_REQ, ACK_CC, NACK, CTRL = 4, 5, 6, 8, 10, 11
local SMALL, MEDIUM = 1, 2 -- headers that follow
local REQUESTS = {[2] = 12, [3] = 12, [13] = 16, [14] = 16} -- of a connection: their sizes

local field = {
    type = ProtoField.uint16("uet.pds.type", "Type", base.DEC, TYPES, 0xf800),
    next = ProtoField.uint16("uet.pds.nh", "Next Hdr", base.DEC, nil, 0x0780),
    control = ProtoField.uint16("uet.pds.ctl_type", "Ctl Type", base.DEC, CONTROLS, 0x0780),
    flags = ProtoField.uint16("uet.pds.flags", "Flags", base.HEX, nil, 0x007f),
    marked = ProtoField.bool("uet.pds.flags.m", "ECN Marked", 16, nil, 0x20),
    again = ProtoField.bool("uet.pds.flags.retx", "Retransmitted", 16, nil, 0x10),
    clear = ProtoField.int16("uet.pds.clear_psn", "Clear PSN Offset"),
    psn = ProtoField.uint32("uet.pds.psn", "PSN"),
    cack = ProtoField.uint32("uet.pds.cack_psn", "CACK PSN"),
    ack = ProtoField.uint32("uet.pds.ack_psn", "ACK PSN"),
    spdcid = ProtoField.uint16("uet.pds.spdcid", "SPDCID"),
    dpdcid = ProtoField.uint16("uet.pds.dpdcid", "DPDCID"),
    target = ProtoField.uint24("uet.pds.req_cc_state.credit_target", "Credit Target"),
    packet = ProtoField.uint32("uet.pds.rudi_pkt_id", "Packet ID", base.HEX),
    job = ProtoField.uint24("uet.ses.std.job_id", "Job ID"),
    code = ProtoField.uint8("uet.pds.nack_code", "NACK Code", base.DEC, CODES),
    nack = ProtoField.uint32("uet.pds.nack_psn", "NACK PSN"),
    most = ProtoField.uint32("uet.pds.nack_max_recv_psn", "Highest PSN"),
    payload = ProtoField.uint32("uet.pds.ctl_payload", "Payload"),
    cc_type = ProtoField.uint8("uet.pds.ack_cc_type", "CC Type", base.DEC, nil, 0xf0),
    sack_offset = ProtoField.uint16("uet.pds.ack_sack_offset", "SACK Offset"),
    sack = ProtoField.uint64("uet.pds.ack_sack_bitmap", "SACK Bitmap", base.HEX),
    cc_state = ProtoField.uint64("uet.pds.ack_cc_state", "CC State", base.HEX),
    opcode = ProtoField.uint8("uet.ses.std.opcode", "Opcode", base.DEC, {[1] = "WRITE"}, 0x3f),
    som = ProtoField.bool("uet.ses.std.som", "Start of Message", 8, nil, 0x01),
    eom = ProtoField.bool("uet.ses.std.eom", "End of Message", 8, nil, 0x02),
    message = ProtoField.uint16("uet.ses.std.message_id", "Message ID"),
    key = ProtoField.uint64("uet.ses.std.mem_key_match_bits", "Memory Key", base.HEX),
    bytes = ProtoField.uint32("uet.ses.std.payload_length", "Payload Length"),
    offset = ProtoField.uint32("uet.ses.std.message_offset", "Message Offset"),
    length = ProtoField.uint32("uet.ses.std.request_length", "Request Length"),
    tss_type = ProtoField.uint32("uet.tss.type", "Type", base.DEC, {[1] = "UET_TSS"}, 0xf8000000),
    sp = ProtoField.uint32("uet.tss.sp", "SP", base.DEC, nil, 0x04000000),
    an = ProtoField.uint32("uet.tss.an", "AN", base.DEC, nil, 0x01000000),
    sdi = ProtoField.uint32("uet.tss.sdi", "SDI", base.DEC, nil, 0x00ffffff),
    ssi = ProtoField.uint32("uet.tss.ssi", "SSI", base.HEX),
    tsc = ProtoField.uint64("uet.tss.tsc", "TSC"),
    icv = ProtoField.bytes("uet.tss.icv", "ICV"),
    short = ProtoField.uint16("uet.ses.short.request_length", "Request Length", base.DEC, nil, 0x3fff),
    place = ProtoField.uint64("uet.ses.short.buffer_offset", "Buffer Offset", base.HEX),
    cut = ProtoField.bool("uet.cut", "Cut by a switch"),
}
uet.fields = field
local udp_length = Field.new("udp.length")

local function opening(buffer, tree, size, name)
    local part = tree:add(buffer(0, size), name)
    part:add(field.opcode, buffer(0, 1))
    part:add(field.eom, buffer(1, 1))
    part:add(field.som, buffer(1, 1))
    return part
end

-- Of a message in one packet: small, or medium, which has a key besides.
local function short(buffer, tree, size)
    if buffer:len() < size then
        return -- cut off
    end
    local part = opening(buffer, tree, size, size == 20 and "SES (small)" or "SES (medium)")
    part:add(field.short, buffer(2, 2))
    part:add(field.job, buffer(5, 3))
    part:add(field.place, buffer(12, 8))
    if size > 20 then
        part:add(field.key, buffer(24, 8))
    end
end

local function semantics(buffer, tree, form)
    if form == SMALL or form == MEDIUM then
        return short(buffer, tree, form == SMALL and 20 or 32)
    end
    if buffer:len() < 44 then
        return -- cut off
    end
    local part = opening(buffer, tree, 44, "SES")
    part:add(field.message, buffer(2, 2))
    part:add(field.job, buffer(5, 3))
    part:add(field.key, buffer(24, 8))
    if buffer(1, 1):bitfield(7, 1) == 0 then
        part:add(field.bytes, buffer(32, 4))
        part:add(field.offset, buffer(36, 4))
    end
    part:add(field.length, buffer(40, 4))
end

local function request(buffer, tree, size, form)
    tree:add(field.clear, buffer(2, 2))
    tree:add(field.psn, buffer(4, 4))
    tree:add(field.spdcid, buffer(8, 2))
    tree:add(field.dpdcid, buffer(10, 2))
    if size == 16 and buffer:len() >= size then
        tree:add(field.target, buffer(13, 3))
    end
    if buffer:len() > size then
        semantics(buffer(size), tree, form)
    end
end

local function acknowledgement(buffer, tree)
    local cack = buffer(4, 4):uint()
    tree:add(field.ack, buffer(2, 2), (cack + buffer(2, 2):int()) % 4294967296)
    tree:add(field.cack, buffer(4, 4))
    tree:add(field.spdcid, buffer(8, 2))
    tree:add(field.dpdcid, buffer(10, 2))
    if buffer:len() >= 32 then
        tree:add(field.cc_type, buffer(12, 1))
        tree:add(field.sack_offset, buffer(14, 2))
        tree:add(field.sack, buffer(16, 8))
        tree:add(field.cc_state, buffer(24, 8))
    end
end

local function refusal(buffer, tree)
    tree:add(field.code, buffer(2, 1))
    tree:add(field.nack, buffer(4, 4))
    tree:add(field.spdcid, buffer(8, 2))
    tree:add(field.dpdcid, buffer(10, 2))
    tree:add(field.most, buffer(12, 4))
end

local function control(buffer, tree)
    tree:add(field.psn, buffer(4, 4))
    tree:add(field.spdcid, buffer(8, 2))
    tree:add(field.dpdcid, buffer(10, 2))
    tree:add(field.payload, buffer(12, 4))
end

-- Of what is encrypted the header alone can be read, and where the ICV is.
local function encrypted(buffer, tree, is_cut)
    local size = buffer(0, 1):bitfield(5, 1) == 1 and 16 or 12
    if buffer:len() < size then
        return
    end
    local part = tree:add(buffer(0, size), "TSS")
    part:add(field.tss_type, buffer(0, 4))
    part:add(field.sp, buffer(0, 4))
    part:add(field.an, buffer(0, 4))
    part:add(field.sdi, buffer(0, 4))
    if size == 16 then
        part:add(field.ssi, buffer(4, 4))
    end
    part:add(field.tsc, buffer(size - 8, 8))
    if not is_cut and buffer:len() == buffer:reported_len() and buffer:len() >= size + ICV_BYTES then
        part:add(field.icv, buffer(buffer:len() - ICV_BYTES, ICV_BYTES))
    end
end

function uet.dissector(buffer, packet, tree)
    if buffer:len() < 8 then
        return 0
    end
    local kind, form = buffer(0, 1):bitfield(0, 5), buffer(0, 2):bitfield(5, 4)
    local part = tree:add(uet, buffer())
    packet.cols.protocol = "UET"
    packet.cols.info = TYPES[kind] or ("type " .. kind)
    if kind == TSS then
        local length = udp_length()
        local is_cut = length ~= nil and length.value - 8 > buffer:reported_len()
        part:add(field.cut, is_cut)
        encrypted(buffer, part, is_cut)
        return buffer:len()
    end
    part:add(field.type, buffer(0, 2))
    part:add(kind == CTRL and field.control or field.next, buffer(0, 2))
    part:add(field.flags, buffer(0, 2))
    part:add(field.marked, buffer(0, 2))
    part:add(field.again, buffer(0, 2))
    local was = udp_length()
    part:add(field.cut, was ~= nil and was.value - 8 > buffer:reported_len())
    if kind == RUDI_REQ or kind == RUDI_RESP then
        part:add(field.packet, buffer(4, 4))
        if kind == RUDI_REQ then
            semantics(buffer(8), part, form)
        end
    elseif kind == UUD_REQ then
        semantics(buffer(4), part, form)
    elseif buffer:len() < 12 then
        return buffer:len()
    elseif REQUESTS[kind] then
        request(buffer, part, REQUESTS[kind], form)
    elseif kind == ACK_CC then
        acknowledgement(buffer, part)
    elseif kind == NACK and buffer:len() >= 16 then
        refusal(buffer, part)
    elseif kind == CTRL and buffer:len() >= 16 then
        control(buffer, part)
    end
    return buffer:len()
end

DissectorTable.get("udp.port"):add(4793, uet)
