"""A tour of p4runtime-shell; run by its own interpreter: ADDRESS DEVICE P4INFO JSON."""

import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.context import P4Type


def main(address: str, device: str, p4info: str, program: str) -> None:
    sh.setup(
        device_id=int(device),
        grpc_addr=address,
        election_id=(0, 1),
        config=sh.FwdPipeConfig(p4info, program),
    )
    try:
        tour()
    finally:
        sh.teardown()


def tour() -> None:
    names = {table.name for table in sh.P4Objects(P4Type.table)}
    assert "Forward.ipv4_lpm" in names, names

    route = sh.TableEntry("ipv4_lpm")(action="count_route")
    route.match["hdr.ipv4.dst"] = "10.1.0.0/16"
    route.action["port"] = "3"
    route.action["dst"] = "00:00:00:00:00:05"
    route.insert()
    (found,) = list(sh.TableEntry("ipv4_lpm").read())
    assert str(found.match["hdr.ipv4.dst"]) == str(route.match["hdr.ipv4.dst"])
    assert found.action["port"] == route.action["port"]
    route.action["port"] = "2"
    route.modify()
    (found,) = list(sh.TableEntry("ipv4_lpm").read())
    assert found.action["port"].value == b"\x02"
    counter = sh.DirectCounterEntry("route_counter")
    counter.table_entry.match["hdr.ipv4.dst"] = "10.1.0.0/16"
    counter.packet_count = 5
    counter.modify()
    (found,) = list(counter.read())
    assert found.packet_count == 5
    route.delete()
    assert list(sh.TableEntry("ipv4_lpm").read()) == []

    filtered = sh.TableEntry("acl")(action="drop")
    filtered.priority = 3
    filtered.match["hdr.ipv4.src"] = "10.0.0.0&&&255.0.0.0"
    filtered.match["hdr.ipv4.protocol"] = "6"
    filtered.match["hdr.ipv4.len"] = "1..7"
    filtered.insert()
    (found,) = list(sh.TableEntry("acl").read())
    assert found.priority == 3
    try:
        filtered.insert()
    except Exception as error:
        assert "ALREADY_EXISTS" in str(error), error
    else:
        raise AssertionError("the second insert must fail")
    filtered.delete()

    default = sh.TableEntry("mac")(action="forward", is_default=True)
    default.action["port"] = "2"
    default.modify()
    (found,) = list(sh.TableEntry("mac")(is_default=True).read())
    assert found.action["port"].value == b"\x02"

    member = sh.ActionProfileMember("ways")(member_id=1, action="route")
    member.action["port"] = "1"
    member.action["dst"] = "1"
    member.insert()
    group = sh.ActionProfileGroup("ways")(group_id=1)
    group.add(1, 2)
    group.insert()
    (found,) = list(sh.ActionProfileGroup("ways").read())
    assert found.group_id == 1
    entry = sh.TableEntry("via_selector")
    entry.match["hdr.ipv4.protocol"] = "5"
    entry.group_id = 1
    entry.insert()
    entry.delete()
    group.delete()
    member.delete()
    shot = sh.TableEntry("via_selector")
    shot.match["hdr.ipv4.protocol"] = "5"
    action = sh.Action("route")
    action["port"] = "1"
    action["dst"] = "2"
    shot.oneshot.add(action)
    shot.insert()
    assert len(list(sh.TableEntry("via_selector").read())) == 1

    multicast = sh.MulticastGroupEntry(1)
    multicast.add(1, 1).add(2, 1)
    multicast.insert()
    (found,) = list(sh.MulticastGroupEntry().read())
    assert [replica.egress_port for replica in found.replicas] == [1, 2]
    clone = sh.CloneSessionEntry(5)
    clone.add(1, 1)
    clone.insert()
    assert len(list(sh.CloneSessionEntry().read())) == 1

    counter = sh.CounterEntry("port_counter")
    assert len(list(counter.read())) == 16
    meter = sh.MeterEntry("port_meter")
    meter.index = 1
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()
    (found,) = list(meter.read())
    assert found.pburst == 4
    digest = sh.DigestEntry("learn_t")
    digest.max_list_size = 1
    digest.insert()
    digest.delete()

    packet = sh.PacketOut(b"x" * 60, egress_port="2", padding="0")
    packet.send()
    major, _, _ = sh.APIVersion().split(".")
    assert major == "1"
    print("tour ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
