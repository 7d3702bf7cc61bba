"""Digests: which are delivered, and what a delivery looks like to a client.

The data plane collects samples, leaves out those not acknowledged yet and numbers its lists; here
they get their types back.
"""

from __future__ import annotations

import time

from finsy.proto import p4r

from switch import dataplane as dp
from switch.p4runtime import p4data
from switch.p4runtime.batch import Batch
from switch.p4runtime.errors import already_exists, invalid, not_found
from switch.p4runtime.pipeline import Pipeline


class Digests:
    """The digests a client asked for."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._configs: dict[int, p4r.DigestEntry.Config] = {}

    def rebind(self, pipeline: Pipeline) -> None:
        """Speak to clients in the terms of another P4Info of the same program."""
        self._pipeline = pipeline

    def write(self, batch: Batch, verb: dp.Verb, message: p4r.DigestEntry) -> None:
        """Start, change or stop the delivery of a digest."""
        symbol = self._pipeline.symbols.digests[message.digest_id]
        index = self._pipeline.digests[symbol.id].index
        where = f"digest {symbol.name}"
        if verb is dp.Verb.INSERT and index in self._configs:
            raise already_exists(f"{where} is delivered already; modify it instead")
        if verb is not dp.Verb.INSERT and index not in self._configs:
            raise not_found(f"{where} is not delivered; insert it first")
        if verb is dp.Verb.DELETE:
            batch.drop(self._configs, index)
            batch.ops.append(dp.DigestWrite(verb, index))
            return
        config = p4r.DigestEntry.Config()
        config.CopyFrom(message.config)
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid(f"{where}: timeouts and the list size cannot be negative")
        batch.put(self._configs, index, config)
        batch.ops.append(
            dp.DigestWrite(
                verb, index, config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns
            )
        )

    def read(self, query: p4r.DigestEntry) -> list[p4r.Entity]:
        """Return one digest's config, or all."""
        entities = []
        for symbol in self._pipeline.symbols.digests.select(query.digest_id):
            config = self._configs.get(self._pipeline.digests[symbol.id].index)
            if config is not None:
                entry = p4r.DigestEntry(digest_id=symbol.id, config=config)
                entities.append(p4r.Entity(digest_entry=entry))
        return entities

    def acknowledgement(self, message: p4r.DigestListAck) -> dp.DigestAck:
        """Return what to tell the data plane of an ack."""
        symbol = self._pipeline.symbols.digests[message.digest_id]
        return dp.DigestAck(self._pipeline.digests[symbol.id].index, message.list_id)

    def message(self, event: dp.DigestList) -> p4r.StreamMessageResponse | None:
        """Return a digest list as clients receive it."""
        symbols = self._pipeline.symbols
        for symbol in symbols.digests:
            if self._pipeline.digests[symbol.id].index == event.digest:
                digest = p4r.DigestList(
                    digest_id=symbol.id,
                    list_id=event.list_id,
                    data=[p4data.build(symbol.type, symbols, iter(s)) for s in event.samples],
                    timestamp=time.time_ns(),
                )
                return p4r.StreamMessageResponse(digest=digest)
        return None
