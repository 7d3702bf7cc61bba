-- Wireshark and tshark: parts and results of collectives in the network (p4src/inc.p4,
-- traffic/core/inc.h), by their UDP port, which is one for private use:
--
--   tshark -X lua_script:lab/wireshark/inc.lua -r h1-leaf1.pcap -Y 'inc.kind == 0x12' -T fields \
--       -e inc.job -e inc.chunk -e inc.number

local inc = Proto("inc", "closlab in-network collective")
local KINDS = {
    [0x11] = "Part", [0x12] = "Result", [0x13] = "Part for the first member",
    [0x14] = "Question for a part", [0x15] = "Result of the first member",
}
local field = {
    kind = ProtoField.uint8("inc.kind", "Kind", base.HEX, KINDS),
    data = ProtoField.bool("inc.data", "With data", 8, nil, 0x01),
    job = ProtoField.uint16("inc.job", "Job"),
    chunk = ProtoField.uint32("inc.chunk", "Chunk"),
    owner = ProtoField.uint16("inc.owner", "Owner of the result", base.HEX),
    member = ProtoField.uint16("inc.member", "Member"),
    exponent = ProtoField.uint8("inc.exponent", "Largest exponent, of floats a window on"),
    number = ProtoField.uint32("inc.number", "Number"),
}
inc.fields = field

local PORT, HEADER, NUMBERS = 0xC105, 16, 256

function inc.dissector(buffer, pinfo, tree)
    if buffer:len() < HEADER or not KINDS[buffer(0, 1):uint()] then
        return 0
    end
    local part = tree:add(inc, buffer())
    pinfo.cols.protocol = "INC"
    pinfo.cols.info = string.format("%s of job %d, chunk %d", KINDS[buffer(0, 1):uint()],
        buffer(2, 2):uint(), buffer(4, 4):uint())
    part:add(field.kind, buffer(0, 1))
    part:add(field.data, buffer(1, 1))
    part:add(field.job, buffer(2, 2))
    part:add(field.chunk, buffer(4, 4))
    part:add(field.owner, buffer(8, 2))
    part:add(field.member, buffer(10, 2))
    part:add(field.exponent, buffer(12, 1))
    for at = 0, math.min(NUMBERS, math.floor((buffer:len() - HEADER) / 4)) - 1 do
        part:add(field.number, buffer(HEADER + 4 * at, 4))
    end
    return buffer:len()
end

DissectorTable.get("udp.port"):add(PORT, inc)
