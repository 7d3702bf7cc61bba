"""Colours, by what they mean: one meaning a colour, in every picture, by day and by night.

A drawing names meanings; whoever writes it out says which colours these are: a page by variables
that follow its reader's preference, a file for a paper by those of the day.

Text contrasts with what it stands on by 4.5 at least, lines and shapes that say something by 3, as
WCAG 2.2 asks; what only leads the eye (`GUIDES`) may be fainter. Meanings that stand beside each
other differ in lightness as well as in hue, for any kind of colour vision.
"""

from __future__ import annotations

from collections.abc import Mapping

# What pictures stand on, and text.
PAPER, WASH, INK, FAINT = "paper", "wash", "ink", "faint"
# What only leads the eye: lines behind a plot, and where a bar could be.
RULE, TRACK = "rule", "track"
# What happens in a fabric.
PAUSE, MARK, DROP = "pause", "mark", "drop"
QUEUE, QUEUE_FILL = "queue", "queue-fill"
WORK, MESSAGE, ON_DARK = "work", "message", "on-dark"  # the last: text on any of these
VICTIM, AGGRESSOR, STRAGGLER = "victim", "aggressor", "straggler"
BUSY = tuple(f"busy{number}" for number in range(5))  # of a link: from idle to full
# Things of one kind that are told apart: runs beside each other, parts of traffic.
SERIES = tuple(f"series{number}" for number in range(8))
# Shares of a whole, in turns, and text on them.
SHARES = ("share0", "share1")
ON_SHARE = {"share0": "on-share0", "share1": "on-share1"}
# Of the page.
ACCENT, WARN, CODE, SHADE = "accent", "warn", "code", "shade"

_DAY_AND_NIGHT: Mapping[str, tuple[str, str]] = {
    PAPER: ("#ffffff", "#161c23"),
    WASH: ("#f5f7f9", "#0e1318"),
    INK: ("#1b2733", "#e4eaf0"),
    FAINT: ("#55626e", "#a3b0bc"),
    RULE: ("#d9dfe5", "#33404c"),
    TRACK: ("#f1efe8", "#222a32"),
    PAUSE: ("#583900", "#f2b632"),
    MARK: ("#16743f", "#50e08c"),
    DROP: ("#b84a06", "#f5703c"),
    QUEUE: ("#1f5fa8", "#5f9bd9"),
    QUEUE_FILL: ("#a9c8e6", "#2b4a68"),
    WORK: ("#59656e", "#9ea3a9"),
    MESSAGE: ("#2f74b5", "#5b9bd9"),
    ON_DARK: ("#ffffff", "#0b1219"),
    AGGRESSOR: ("#0b3a75", "#a9d0f5"),
    VICTIM: ("#c4246c", "#ff5c96"),
    STRAGGLER: ("#8437b0", "#b06cf5"),
    BUSY[0]: ("#83929e", "#697681"),
    BUSY[1]: ("#4377a6", "#5590c4"),
    BUSY[2]: ("#1f5a94", "#7bb1dd"),
    BUSY[3]: ("#123f70", "#aed4f2"),
    BUSY[4]: ("#061e3f", "#e2f2ff"),
    SERIES[0]: ("#1257db", "#5a8ff5"),
    SERIES[1]: ("#6b1d30", "#c273bd"),
    SERIES[2]: ("#007e8a", "#2fe6bc"),
    SERIES[3]: ("#b9792b", "#ad7136"),
    SERIES[4]: ("#5b6f83", "#9fb3c8"),
    SERIES[5]: ("#3f7d20", "#a3d977"),
    SERIES[6]: ("#4a3fa0", "#a99cf0"),
    SERIES[7]: ("#2b2b2b", "#f0e6d8"),
    SHARES[0]: ("#2b6ca3", "#2f73ad"),
    SHARES[1]: ("#7793ab", "#8ba6bd"),
    ON_SHARE[SHARES[0]]: ("#ffffff", "#ffffff"),
    ON_SHARE[SHARES[1]]: ("#0b1219", "#0b1219"),
    ACCENT: ("#0b5fa5", "#5aa5e0"),
    WARN: ("#fff3e6", "#33251a"),
    CODE: ("#e9eef2", "#26303a"),
    SHADE: ("#b3bac1", "#05080b"),
}
DAY = {name: day for name, (day, _) in _DAY_AND_NIGHT.items()}
NIGHT = {name: night for name, (_, night) in _DAY_AND_NIGHT.items()}

GROUNDS = (PAPER, WASH)  # of any text
PLAIN_GROUNDS = (WARN, CODE)  # of ink and what is faint
GUIDES = (RULE, TRACK, QUEUE_FILL, SHADE)
# What text stands on, besides paper: its colour by what is under it.
ON = {
    **ON_SHARE,
    **dict.fromkeys((MESSAGE, VICTIM, AGGRESSOR, STRAGGLER, WORK), ON_DARK),
    **dict.fromkeys((SERIES[at] for at in (0, 1, 2, 6, 7)), ON_DARK),
}
TEXTS = (INK, FAINT, PAUSE, MARK, DROP, VICTIM, STRAGGLER)


def variables(colours: Mapping[str, str]) -> str:
    """The colours as a style sheet's variables."""
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())


def sheet() -> str:
    """A page's style sheet: as its reader prefers, or by day or night as its root says."""
    return (
        f":root{{{variables(DAY)}}}\n@media (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=day]){{{variables(NIGHT)}}}}}\n"
        f":root[data-theme=night]{{{variables(NIGHT)}}}\n"
    )
