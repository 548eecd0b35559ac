"""The audit of the network: where it drops units, and how often."""

from typing import Any

from caveat.errors import InputTypeError
from caveat.reports.markup import (
    Cell,
    count,
    numeric,
    percent,
    short,
    table,
    term,
    words,
)
from caveat.reports.section import Section
from caveat.sampling import Sites

_MOST = 40  # sites that are listed


def checked_sites(audit: Any) -> Sites:
    """What ``caveat.audit`` returned.

    Parameters
    ----------
    audit : Sites
        What was given.

    Returns
    -------
    Sites
    """
    if not isinstance(audit, Sites):
        raise InputTypeError(
            f"audit must be what caveat.audit(model, x) returns, Sites. Got "
            f"{type(audit).__name__}."
        )
    return audit


def site_section(sites: Sites) -> Section:
    """A table of the sites.

    Parameters
    ----------
    sites : Sites
        Of the model.

    Returns
    -------
    Section
    """
    rates = sorted({site.rate for site in sites if site.rate > 0.0})
    rate = ""
    if len(rates) == 1:
        rate = f", dropping {percent(rates[0], 0)} of the units"
    elif rates:
        rate = f", dropping {percent(rates[0], 0)} to {percent(rates[-1], 0)}"
    live = sum(site.fires_in_eval for site in sites)
    finding = (
        f"{short(sites.model_name)} draws noise at {count(len(sites), 'site')}{rate}; "
        f"{percent(sites.prefix_share, 0)} of a pass lies before the first."
    )
    if live:
        finding += (
            f" {count(live, 'site')} draw noise even in plain evaluation: the network "
            f"gives different answers each time it is asked."
        )
    lines = [
        [
            words(site.path or "(model)", 40),
            words(site.kind),
            numeric(site.rate, percent(site.rate, 0) if site.rate else "–"),
            Cell(" × ".join(map(str, site.mask_shape)) or "1"),
            Cell("<strong>yes</strong>" if site.fires_in_eval else "no"),
        ]
        for site in sites[:_MOST]
    ]
    headings = [
        term("site"),
        "kind",
        term("rate"),
        "mask",
        term("fires in eval"),
    ]
    caption = "Sites of the network, in the order of a pass"
    if len(sites) > _MOST:
        caption += f" ({_MOST} of {len(sites)})"
    body = table(caption, headings, lines)
    question = "Where does its doubt come from?"
    return Section("audit", "Audit of dropout", question, finding, body)
