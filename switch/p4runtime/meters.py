"""Meter configs: which are acceptable, and the rates they stand for."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from switch import dataplane as dp
from switch.p4runtime.errors import invalid


def check_rates(config: p4r.MeterConfig, kind: int, where: str) -> None:
    """Refuse a config that its type of meter cannot have."""
    fields = (config.cir, config.cburst, config.pir, config.pburst, config.eburst)
    if min(fields) < 0:
        raise invalid(f"{where}: a meter's rates and bursts cannot be negative")
    if kind == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
        if config.eburst:
            raise invalid(f"{where}: a two-rate meter has no excess burst (eburst)")
        if config.pir < config.cir:
            raise invalid(f"{where}: the peak rate {config.pir} is below the rate {config.cir}")
        return
    if (config.pir, config.pburst) != (config.cir, config.cburst):
        raise invalid(f"{where}: a single-rate meter needs pir = cir and pburst = cburst")
    if config.eburst and kind == p4i.MeterSpec.SINGLE_RATE_TWO_COLOR:
        raise invalid(f"{where}: a two-colour meter has no excess burst (eburst)")


def rates_of(config: p4r.MeterConfig | None) -> dp.MeterRates | None:
    """Return the rates of a config; an excess burst deepens the peak bucket."""
    if config is None:
        return None
    return dp.MeterRates(config.cir, config.cburst, config.pir, config.pburst + config.eburst)


def config_of(rates: dp.MeterRates | None) -> p4r.MeterConfig | None:
    """Return the config of a two-rate meter's rates."""
    if rates is None:
        return None
    return p4r.MeterConfig(cir=rates.cir, cburst=rates.cburst, pir=rates.pir, pburst=rates.pburst)
