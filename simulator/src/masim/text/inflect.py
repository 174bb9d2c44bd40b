"""English verb forms, from the base form."""

from __future__ import annotations

from typing import Literal

VerbForm = Literal["base", "past", "ing"]

_PAST = dict(
    pair.split(":")
    for pair in """
    be:was become:became begin:began bet:bet bite:bit blow:blew break:broke bring:brought build:built burn:burnt buy:bought
    catch:caught choose:chose come:came cost:cost cut:cut dig:dug do:did draw:drew drink:drank drive:drove eat:ate
    fall:fell feed:fed feel:felt fight:fought find:found fit:fitted fly:flew forget:forgot get:got give:gave go:went
    grind:ground grow:grew hang:hung have:had hear:heard hide:hid hit:hit hold:held keep:kept know:knew lay:laid lead:led
    leave:left lend:lent let:let lie:lay light:lit lose:lost make:made mean:meant meet:met pay:paid put:put quit:quit
    read:read rebuild:rebuilt redo:redid ride:rode ring:rang rise:rose rewrite:rewrote run:ran say:said see:saw sell:sold
    send:sent set:set sew:sewed shake:shook shine:shone shoot:shot show:showed shut:shut sing:sang sit:sat sleep:slept
    speak:spoke spend:spent spin:spun split:split spread:spread stand:stood steal:stole stick:stuck strip:stripped
    sweep:swept swim:swam swing:swung take:took teach:taught tear:tore tell:told think:thought throw:threw
    understand:understood wake:woke wear:wore win:won wind:wound write:wrote rethink:rethought oversleep:overslept
    overpay:overpaid undo:undid outrun:outran
    """.split()
)
_DOUBLED = frozenset(
    "beg chat chop clip cut dig dip drag drop fit flip get grab grin hit hop hum jog knit let log map mop nap nod pat peg "
    "pin plan plot plug pop put quit rip rub run scan scrap set ship shop shut sip sit skim skip slip snap spin split spot "
    "step stir stop strip swap swim tap tip top trim trip tug unplug whip win wrap zip admit begin commit forget prefer "
    "transfer refer scrub thin rig bag format".split()
) - {"format"}
_KEEPS_E = frozenset({"be", "see", "agree", "dye", "flee", "free", "singe"})


def inflect(verb: str, form: VerbForm) -> str:
    """``verb`` in the given form: ``inflect("stop", "ing")`` is ``stopping``."""
    if form == "base":
        return verb
    if form == "past":
        if verb in _PAST:
            return _PAST[verb]
        if verb.endswith("e"):
            return verb + "d"
        if verb.endswith("y") and verb[-2] not in "aeiou":
            return verb[:-1] + "ied"
        return (verb + verb[-1] if verb in _DOUBLED else verb) + "ed"
    if verb in ("lie", "die", "tie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and verb not in _KEEPS_E:
        return verb[:-1] + "ing"
    return (verb + verb[-1] if verb in _DOUBLED else verb) + "ing"
