-- Wireshark and tshark: the header that leaves exchange under lb.policy=conga (p4src/conga.p4).
--
-- It stands between Ethernet and IPv4, under an EtherType for local experiments, so that without
-- this a capture between switches ends there:
--
--   tshark -X lua_script:lab/wireshark/conga.lua -r leaf1-spine1.pcap

local conga = Proto("conga", "closlab CONGA")
local field = {
    leaf = ProtoField.uint16("conga.leaf", "From leaf"),
    path = ProtoField.uint8("conga.path", "Path taken"),
    metric = ProtoField.uint8("conga.metric", "Busiest link on it so far (0 to 7)"),
    feedback_path = ProtoField.uint8("conga.feedback_path", "Told of path"),
    feedback_metric = ProtoField.uint8("conga.feedback_metric", "How busy that was (0 to 7)"),
    ether_type = ProtoField.uint16("conga.ether_type", "Type of what follows", base.HEX),
}
conga.fields = field

local LENGTH = 8
local ethertypes = DissectorTable.get("ethertype")

function conga.dissector(buffer, packet, tree)
    if buffer:len() < LENGTH then
        return 0
    end
    local part = tree:add(conga, buffer(0, LENGTH))
    part:add(field.leaf, buffer(0, 2))
    part:add(field.path, buffer(2, 1))
    part:add(field.metric, buffer(3, 1))
    part:add(field.feedback_path, buffer(4, 1))
    part:add(field.feedback_metric, buffer(5, 1))
    part:add(field.ether_type, buffer(6, 2))
    ethertypes:try(buffer(6, 2):uint(), buffer(LENGTH):tvb(), packet, tree)
    return buffer:len()
end

ethertypes:add(0x88b5, conga)
