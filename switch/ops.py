"""What a control plane may ask of a data plane, as plain values.

Everything is named by index (`Program` gives the names) and every value is an int.
A batch is a sequence of these; each answers with `None` or an `OpError`, in order.
"""

from enum import IntEnum

from params.data import Data

NO_ACTION = -1


class Verb(IntEnum):
    """What to do with an entity; the numbers are P4Runtime's."""

    INSERT = 1
    MODIFY = 2
    DELETE = 3


class Code(IntEnum):
    """Why an operation was refused; the numbers are gRPC's status codes."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12


class OpError(Data):
    """One refused operation; nothing was changed by it."""

    code: Code
    message: str


class Entry(Data, frozen=False):
    """A table entry: what it matches and what it does.

    `values` and `masks` have one item per key of the table, in the table's order. A mask is, by the
    key's match kind: exact - ignored; lpm - the prefix length; ternary - the mask; range - the
    high end (inclusive). `masks` may be left empty where every key is exact.
    Of two entries that match the one with the larger `priority` wins (ternary and range tables;
    ignored elsewhere). A direct table sets `action` and `params`; a table with an action profile
    sets `member` or `group`.
    """

    table: int
    values: tuple[int, ...] = ()
    masks: tuple[int, ...] = ()
    priority: int = 0
    action: int = NO_ACTION
    params: tuple[int, ...] = ()
    member: int = 0
    group: int = 0
    idle_timeout_ns: int = 0


class TableWrite(Data, frozen=False):
    """Insert, modify or delete one entry; to delete only its match part is looked at."""

    verb: Verb
    entry: Entry


class DefaultWrite(Data, frozen=False):
    """Set a table's default action; `NO_ACTION` restores the program's own."""

    table: int
    action: int = NO_ACTION
    params: tuple[int, ...] = ()
    member: int = 0
    group: int = 0


class MemberWrite(Data, frozen=False):
    """Insert, modify or delete a member of an action profile; ids are the caller's, from 1."""

    verb: Verb
    profile: int
    member: int
    action: int = NO_ACTION
    params: tuple[int, ...] = ()


class GroupMember(Data, frozen=False):
    """A member's place in a group; it stands aside while its watched port is down."""

    member: int
    weight: int = 1
    watch_port: int = -1


class GroupWrite(Data, frozen=False):
    """Insert, modify (replace the members) or delete a group of an action selector."""

    verb: Verb
    profile: int
    group: int
    members: tuple[GroupMember, ...] = ()


class Replica(Data, frozen=False):
    """One copy that a multicast group or clone session makes."""

    port: int
    instance: int = 0


class MulticastWrite(Data, frozen=False):
    """Insert, modify or delete a multicast group (1..65535)."""

    verb: Verb
    group: int
    replicas: tuple[Replica, ...] = ()


class CloneWrite(Data, frozen=False):
    """Insert, modify or delete a clone session (0..32767).

    `max_bytes` truncates the copies (0: whole packets); `priority` is the queue they enter;
    with `group` set the copies go to that multicast group too.
    """

    verb: Verb
    session: int
    replicas: tuple[Replica, ...] = ()
    max_bytes: int = 0
    priority: int = 0
    group: int = 0


class CounterWrite(Data, frozen=False):
    """Set one cell of an indirect counter, or all of them with `index` None."""

    counter: int
    index: int | None
    packets: int = 0
    bytes: int = 0


class DirectCounterWrite(Data, frozen=False):
    """Set the counter of one table entry."""

    entry: Entry
    packets: int = 0
    bytes: int = 0


class MeterRates(Data, frozen=False):
    """A two-rate three-colour meter's rates, in bytes or packets a second as the meter counts."""

    cir: int
    cburst: int
    pir: int
    pburst: int


class MeterWrite(Data, frozen=False):
    """Set the rates of one meter, or of the whole array; None returns it to always green."""

    meter: int
    index: int | None
    rates: MeterRates | None


class DirectMeterWrite(Data, frozen=False):
    """Set the rates of one table entry's meter."""

    entry: Entry
    rates: MeterRates | None


class RegisterWrite(Data, frozen=False):
    """Set one cell of a register array, or all of them with `index` None."""

    register: int
    index: int | None
    value: int


class ValueSetWrite(Data, frozen=False):
    """Replace a parser value set; each member is one (value, mask) per field of the set's key.

    Programs without masks pass all ones. `BMv2` joins the fields into one number: here too, so a
    member is a single pair of `ValueSetInfo.width` bits, first field in the high bits.
    """

    value_set: int
    members: tuple[tuple[int, int], ...]


class DigestWrite(Data, frozen=False):
    """Start (insert, modify) or stop (delete) the delivery of a digest."""

    verb: Verb
    digest: int
    max_timeout_ns: int = 0
    max_list_size: int = 1
    ack_timeout_ns: int = 0


class DigestAck(Data, frozen=False):
    """Tell the data plane that a digest list arrived, so equal samples may be sent again."""

    digest: int
    list_id: int


Op = (
    TableWrite
    | DefaultWrite
    | MemberWrite
    | GroupWrite
    | MulticastWrite
    | CloneWrite
    | CounterWrite
    | DirectCounterWrite
    | MeterWrite
    | DirectMeterWrite
    | RegisterWrite
    | ValueSetWrite
    | DigestWrite
    | DigestAck
)
