"""MSCCL's rings, written here: what their files look like, for any number of GPUs and channels."""

from __future__ import annotations


def ring(gpus: int, channels: int = 1, coll: str = "allreduce") -> str:
    """An all-reduce in place, a reduce-scatter or an all-gather around a ring, on each channel."""
    chunks = gpus * channels
    out = [
        f'<algo name="ring" proto="Simple" nchannels="{channels}" nchunksperloop="{chunks}" '
        f'ngpus="{gpus}" coll="{coll}" inplace="1">'
    ]
    for gpu in range(gpus):
        out.append(f'<gpu id="{gpu}" i_chunks="{chunks}" o_chunks="{chunks}" s_chunks="0">')
        for channel in range(channels):
            ends = f'send="{(gpu + 1) % gpus}" recv="{(gpu - 1) % gpus}"'
            out.append(f'<tb id="{channel}" {ends} chan="{channel}">')
            out += [
                f'<step s="{at}" type="{kind}" srcbuf="{buffer}" srcoff="{chunk}" '
                f'dstbuf="{buffer}" dstoff="{chunk}" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
                for at, (kind, buffer, chunk) in enumerate(
                    _steps(gpu, gpus, channel, channels, coll)
                )
            ]
            out.append("</tb>")
        out.append("</gpu>")
    return "\n".join([*out, "</algo>"])


def _steps(
    gpu: int, gpus: int, channel: int, channels: int, coll: str
) -> list[tuple[str, str, int]]:
    def chunk(of: int) -> int:
        return of % gpus * channels + channel

    steps: list[tuple[str, str, int]] = []
    if coll in ("allreduce", "reduce_scatter"):
        # A GPU ends with the sum of its own part, or passes it on to be gathered.
        steps.append(("s", "i", chunk(gpu - 1)))
        steps += [("rrs", "i", chunk(gpu - 1 - back)) for back in range(1, gpus - 1)]
        steps.append(("rrc" if coll == "reduce_scatter" else "rrcs", "i", chunk(gpu)))
    if coll == "allreduce":
        steps += [("rcs", "i", chunk(gpu - back)) for back in range(1, gpus - 1)]
        steps.append(("r", "i", chunk(gpu + 1)))
    if coll == "allgather":
        steps.append(("s", "o", chunk(gpu)))
        steps += [("rcs", "o", chunk(gpu - back)) for back in range(1, gpus - 1)]
        steps.append(("r", "o", chunk(gpu + 1)))
    return steps
