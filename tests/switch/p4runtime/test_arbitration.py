"""Who may write, message by message."""

import asyncio

import grpc
import pytest
from finsy.proto import p4r, rpc_code

from switch.p4runtime.arbitration import Arbiter, Stream
from switch.p4runtime.errors import RequestError

from .rig import Client, asynchronous, fails, running


class Controller:
    """A stream that keeps what it is told."""

    def __init__(self, arbiter: Arbiter, role: str = "") -> None:
        self.updates: list[p4r.MasterArbitrationUpdate] = []
        self.stream = Stream(lambda message: self.updates.append(message.arbitration))
        self._arbiter = arbiter
        self._role = role

    def bid(self, election_id: int | None, device_id: int = 1) -> int:
        update = p4r.MasterArbitrationUpdate(device_id=device_id)
        if election_id is not None:
            update.election_id.high = election_id >> 64
            update.election_id.low = election_id & (1 << 64) - 1
        if self._role:
            update.role.name = self._role
        self._arbiter.bid(self.stream, update)
        return self.updates[-1].status.code

    def leave(self) -> None:
        self._arbiter.leave(self.stream)


def test_the_highest_bid_is_primary_and_all_are_told() -> None:
    arbiter = Arbiter(1)
    low, high = Controller(arbiter), Controller(arbiter)
    assert low.bid(5) == rpc_code.OK
    assert high.bid(9) == rpc_code.OK
    assert low.updates[-1].status.code == rpc_code.ALREADY_EXISTS
    assert low.updates[-1].election_id.low == 9
    assert arbiter.is_primary(high.stream)
    assert not arbiter.is_primary(low.stream)


def test_a_bid_that_changes_nothing_is_answered_to_the_bidder_alone() -> None:
    arbiter = Arbiter(1)
    primary, backup = Controller(arbiter), Controller(arbiter)
    primary.bid(9)
    assert backup.bid(5) == rpc_code.ALREADY_EXISTS
    assert len(primary.updates) == 1


def test_backups_do_not_slide_into_the_primarys_place() -> None:
    arbiter = Arbiter(1)
    primary, backup = Controller(arbiter), Controller(arbiter)
    primary.bid(9)
    backup.bid(5)
    primary.leave()
    assert backup.updates[-1].status.code == rpc_code.NOT_FOUND
    assert backup.updates[-1].election_id.low == 9
    assert backup.bid(8) == rpc_code.NOT_FOUND
    assert backup.bid(9) == rpc_code.OK


def test_a_primary_may_step_down() -> None:
    arbiter = Arbiter(1)
    primary, backup = Controller(arbiter), Controller(arbiter)
    primary.bid(9)
    backup.bid(5)
    assert primary.bid(4) == rpc_code.NOT_FOUND
    assert backup.updates[-1].status.code == rpc_code.NOT_FOUND


def test_the_highest_bid_is_forgotten_when_everybody_left() -> None:
    arbiter = Arbiter(1)
    first = Controller(arbiter)
    first.bid(100)
    first.leave()
    assert Controller(arbiter).bid(1) == rpc_code.OK


def test_a_used_election_id_ends_the_stream_in_words_clients_know() -> None:
    arbiter = Arbiter(1)
    Controller(arbiter).bid(9)
    with pytest.raises(RequestError, match=r"[Ee]lection id .*\bused\b") as caught:
        Controller(arbiter).bid(9)
    assert caught.value.code == rpc_code.INVALID_ARGUMENT


def test_who_bids_nothing_is_never_primary() -> None:
    arbiter = Arbiter(1)
    silent, other = Controller(arbiter), Controller(arbiter)
    assert silent.bid(None) == rpc_code.NOT_FOUND
    assert not silent.updates[-1].HasField("election_id")
    assert other.bid(None) == rpc_code.NOT_FOUND
    assert other.bid(0) == rpc_code.OK


def test_election_ids_have_128_bits() -> None:
    arbiter = Arbiter(1)
    small, big = Controller(arbiter), Controller(arbiter)
    small.bid((1 << 64) - 1)
    assert big.bid(1 << 64) == rpc_code.OK
    assert small.updates[-1].election_id.high == 1


def test_each_role_has_a_primary() -> None:
    arbiter = Arbiter(1)
    plain, special = Controller(arbiter), Controller(arbiter, "special")
    assert plain.bid(9) == rpc_code.OK
    assert special.bid(9) == rpc_code.OK
    assert special.updates[-1].role.name == "special"
    assert set(arbiter.primaries()) == {plain.stream, special.stream}


@pytest.mark.parametrize(("device_id", "code"), [(2, rpc_code.NOT_FOUND), (0, rpc_code.NOT_FOUND)])
def test_another_device_is_not_found(device_id: int, code: int) -> None:
    with pytest.raises(RequestError) as caught:
        Controller(Arbiter(1)).bid(1, device_id)
    assert caught.value.code == code


def test_a_stream_keeps_its_device_and_role() -> None:
    arbiter = Arbiter(1)
    controller = Controller(arbiter)
    controller.bid(1)
    with pytest.raises(RequestError) as caught:
        controller.bid(1, device_id=2)
    assert caught.value.code == rpc_code.FAILED_PRECONDITION
    controller._role = "another"
    with pytest.raises(RequestError) as caught:
        controller.bid(1)
    assert caught.value.code == rpc_code.FAILED_PRECONDITION


async def quiet(clients: list[Client]) -> None:
    """Forget what the controllers were told so far: all that comes before a complaint."""
    nonsense = p4r.DigestListAck(digest_id=0x17FFFFFF)
    for client in clients:
        await client.stream.write(p4r.StreamMessageRequest(digest_ack=nonsense))
        await client.next("error")


@asynchronous
async def test_ten_controllers_fight_and_one_of_them_wins() -> None:
    async with running() as rig:
        clients = [Client(rig.address, election_id=number) for number in range(1, 11)]
        try:
            for _ in range(3):
                await asyncio.gather(*(client.bid() for client in clients))
            last = clients[-1]
            await quiet(clients)
            assert (await last.bid()).status.code == rpc_code.OK
            await quiet(clients)
            for client in clients[:-1]:
                answer = await client.bid()
                assert answer.status.code == rpc_code.ALREADY_EXISTS
                assert answer.election_id.low == 10
        finally:
            await asyncio.gather(*(client.close() for client in clients))

        # The switch goes on: a new session begins from scratch.
        async def settle() -> int:
            client = Client(rig.address, election_id=1)
            code = (await client.bid()).status.code
            await client.close()
            return code

        for _ in range(50):
            if await settle() == rpc_code.OK:
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("the closed streams were never forgotten")


@asynchronous
async def test_a_duplicate_bid_ends_the_stream_with_invalid_argument() -> None:
    async with running() as rig:
        first, second = Client(rig.address, 5), Client(rig.address, 5)
        await first.bid()
        await second.stream.write(p4r.StreamMessageRequest(arbitration=second.arbitration()))
        assert await second.stream.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "used" in await second.stream.details()
        await first.close()
        await second.close()


@asynchronous
async def test_only_the_primary_writes() -> None:
    async with running() as rig:
        primary, backup = Client(rig.address, 9), Client(rig.address, 5)
        await primary.bid()
        await backup.bid()
        error = await fails(backup.write())
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        assert "9" in (error.details() or "")
        error = await fails(backup.set_pipeline(None))
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        await primary.close()
        await backup.close()


@asynchronous
async def test_a_primary_that_vanishes_is_noticed() -> None:
    async with running() as rig:
        primary, backup = Client(rig.address, 9), Client(rig.address, 5)
        await primary.bid()
        await backup.bid()
        await primary.close()
        notice = (await backup.next("arbitration")).arbitration
        assert notice.status.code == rpc_code.NOT_FOUND
        await backup.close()
