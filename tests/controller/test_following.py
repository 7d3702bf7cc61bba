"""Who follows routing daemons fails with whoever takes in what they tell: nobody goes on deaf."""

import asyncio
from pathlib import Path

import grpc
import pytest
from finsy.gnmiclient import GNMIClientError
from finsy.p4client import P4Client
from finsy.proto import p4r

from controller.client import Target, result_of
from controller.errors import ControllerError
from controller.fpm import Message
from controller.rib import Rib
from controller.routing import _Daemon, _fail_with, _News
from tests.controller.test_fpm import by_number, route


def come(news: _News) -> None:
    asyncio.run(asyncio.wait_for(news.come(), 60))


def test_what_is_new_is_told_and_what_fails() -> None:
    news = _News()
    news.take(lambda: False)
    news.take(lambda: True)
    come(news)
    news.take([].pop)
    with pytest.raises(IndexError):
        come(news)


class Deaf(Rib, frozen=False):
    """A defect."""

    def hear(self, message: Message) -> None:
        raise KeyError(message)


def test_a_daemons_word_that_is_too_much_is_no_silence() -> None:
    async def followed() -> None:
        news = _News()
        daemon = _Daemon(Deaf({}, []), news)
        server = await asyncio.start_server(daemon.serve, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(route("10.0.2.0/24", by_number(1)))
        try:
            await news.come()
        finally:
            daemon.close()
            writer.close()
            server.close()

    with pytest.raises(KeyError):
        asyncio.run(asyncio.wait_for(followed(), 60))


def test_a_switch_that_breaks_off_is_named() -> None:
    """finsy cancels who works at it."""

    async def followed() -> None:
        task = asyncio.get_running_loop().create_future()
        task.cancel()
        _fail_with(task, Target("leaf3", "127.0.0.1:9", 1, Path(), Path()))

    with pytest.raises(ControllerError, match=r"leaf3 at 127\.0\.0\.1:9 broke off"):
        asyncio.run(followed())


def test_an_end_of_the_connection_is_no_defect_of_ours() -> None:
    """finsy asserts that it has one; and has an error of gNMI's besides that of P4Runtime's."""

    async def ended(error: Exception) -> None:
        task = asyncio.get_running_loop().create_future()
        task.set_exception(error)
        result_of(task, Target("leaf3", "127.0.0.1:9", 1, Path(), Path()))

    with pytest.raises(AssertionError) as finsys:
        asyncio.run(P4Client("127.0.0.1:9", None).request(p4r.CapabilitiesRequest()))
    metadata = grpc.aio.Metadata()
    gone = GNMIClientError(grpc.aio.AioRpcError(grpc.StatusCode.CANCELLED, metadata, metadata))
    for error in (finsys.value, gone):
        with pytest.raises(ControllerError, match=r"leaf3 at 127\.0\.0\.1:9 (broke off|refused)"):
            asyncio.run(ended(error))
    with pytest.raises(AssertionError, match="ours"):
        asyncio.run(ended(AssertionError("ours")))
