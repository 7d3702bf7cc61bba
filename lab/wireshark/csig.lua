-- Wireshark and tshark: CSIG's tags (p4src/csig.p4), compact and wide, and what answers reflect of
-- them. No EtherType is assigned, so that without this a tagged frame ends behind it:
--
--   tshark -X lua_script:lab/wireshark/csig.lua -r h1-leaf1.pcap -Y csig.reflected -T fields \
--       -e csig.signal -e csig.value -e csig.locator
--
-- A reflected tag follows the AETH of an answer whose BTH has our reserved bit (traffic/core/wire.h).

local csig = Proto("csig", "closlab CSIG")
local SIGNALS = {
    [0] = "ABW: Mb/s free", [1] = "ABW/C: of 65536", [2] = "PD: ns in the switch",
    [3] = "nQD: ns of queue",
}
local field = {
    signal = ProtoField.uint8("csig.signal", "Signal", base.DEC, SIGNALS),
    cut = ProtoField.bool("csig.d", "Not to be updated: a switch cut the packet"),
    code = ProtoField.uint32("csig.code", "Bucket, or Steps"),
    value = ProtoField.uint32("csig.value", "At least"),
    locator = ProtoField.uint16("csig.locator", "Locator", base.HEX),
    wide = ProtoField.bool("csig.wide", "Wide"),
    reflected = ProtoField.bool("csig.reflected", "Reflected by an answer"),
    ether_type = ProtoField.uint16("csig.ether_type", "Type of what follows", base.HEX),
}
csig.fields = field

local COMPACT, WIDE = 0x9900, 0x9901
local BYTES = { [COMPACT] = 4, [WIDE] = 8 } -- the EtherType included
local FIRST = { [0] = 32, [2] = 16, [3] = 16 }
local ethertypes = DissectorTable.get("ethertype")

-- The least value of a compact tag's bucket, and of a wide tag's steps.
local function least(signal, code, is_wide)
    if signal > 3 then
        return nil
    elseif is_wide then
        return signal == 1 and code or code * 8
    elseif signal == 1 then
        return code * 2048
    elseif code == 0 then
        return 0
    end
    local octave, half = math.floor((code - 1) / 2), (code - 1) % 2
    return math.floor(FIRST[signal] * 2 ^ octave * (2 + half) / 2)
end

-- `buffer` begins behind the tag's own type.
local function show(buffer, is_wide, tree)
    local bytes = is_wide and 6 or 2
    local part = tree:add(csig, buffer(0, bytes))
    local signal, code, cut, locator
    if is_wide then
        local word = buffer(2, 4)
        signal, code, cut = word:bitfield(0, 4), word:bitfield(4, 20), word:bitfield(24, 1)
        locator = buffer(0, 2):uint()
    else
        local word = buffer(0, 2)
        signal, cut, code = word:bitfield(0, 3), word:bitfield(3, 1), word:bitfield(4, 5)
        locator = word:bitfield(9, 7)
    end
    part:add(field.signal, buffer(0, bytes), signal)
    part:add(field.code, buffer(0, bytes), code)
    local value = least(signal, code, is_wide)
    if value then
        part:add(field.value, buffer(0, bytes), value)
    end
    part:add(field.cut, buffer(0, bytes), cut == 1)
    part:add(field.locator, buffer(0, bytes), locator)
    part:add(field.wide, is_wide)
    return part
end

local function tag(is_wide)
    local bytes = is_wide and 6 or 2
    return function(buffer, packet, tree)
        if buffer:len() < bytes + 2 then
            return 0
        end
        local part = show(buffer, is_wide, tree)
        part:add(field.ether_type, buffer(bytes, 2))
        ethertypes:try(buffer(bytes, 2):uint(), buffer(bytes + 2):tvb(), packet, tree)
        return buffer:len()
    end
end

local compact, wide = Proto("csig_compact", "CSIG, compact"), Proto("csig_wide", "CSIG, wide")
compact.dissector, wide.dissector = tag(false), tag(true)
ethertypes:add(COMPACT, compact)
ethertypes:add(WIDE, wide)

-- Answers: their BTH is where UDP's payload begins, telemetry aside.
local ACKNOWLEDGE, BTH, AETH = 0x11, 12, 4
local payload = Field.new("udp.payload")
local port = Field.new("udp.dstport")
local reflections = Proto("csig_reflection", "CSIG, reflected")

function reflections.dissector(_, _, tree)
    local to, bytes = port(), payload()
    if not to or to.value ~= 4791 or not bytes then
        return
    end
    local buffer = bytes.range
    local at = BTH + AETH
    if buffer:len() < at + 4 or buffer(0, 1):uint() ~= ACKNOWLEDGE or
        buffer(4, 1):bitfield(7, 1) == 0 then
        return
    end
    local kind = buffer(at, 2):uint()
    if BYTES[kind] and buffer:len() >= at + BYTES[kind] then
        show(buffer(at + 2, BYTES[kind] - 2), kind == WIDE, tree):add(field.reflected, true)
    end
end

register_postdissector(reflections)
