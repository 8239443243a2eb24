"""Makes the past tense of a verb, which is the name of a relation."""

import re

from gristmill.models.language.names import split_words


def _split_pairs(text: str) -> dict[str, str]:
    return {one: other for one, _, other in (pair.partition(":") for pair in text.split())}


BE = frozenset({"be", "is", "are", "am", "was", "were", "been", "being", "'s", "’s", "'re", "’re", "'m", "’m"})
IRREGULAR = _split_pairs("""
    bear:bore become:became begin:began bend:bent bet:bet bid:bid bind:bound bite:bit blow:blew break:broke breed:bred
    bring:brought broadcast:broadcast build:built burst:burst buy:bought cast:cast catch:caught choose:chose come:came
    cost:cost creep:crept cut:cut deal:dealt dig:dug do:did draw:drew drink:drank drive:drove eat:ate fall:fell
    feed:fed feel:felt fight:fought find:found flee:fled fly:flew forbid:forbade forget:forgot forgive:forgave
    freeze:froze get:got give:gave go:went grind:ground grow:grew hang:hung have:had hear:heard hide:hid hit:hit
    hold:held hurt:hurt keep:kept know:knew lay:laid lead:led leave:left lend:lent let:let light:lit lose:lost
    make:made mean:meant meet:met offset:offset pay:paid put:put quit:quit read:read relay:relayed ride:rode ring:rang
    rise:rose run:ran say:said see:saw seek:sought sell:sold send:sent set:set shake:shook shoot:shot shrink:shrank
    shut:shut sing:sang sink:sank sit:sat sleep:slept slide:slid speak:spoke spend:spent spin:spun split:split
    spread:spread stand:stood steal:stole stick:stuck strike:struck swear:swore sweep:swept swim:swam swing:swung
    take:took teach:taught tear:tore tell:told think:thought throw:threw understand:understood wake:woke wear:wore
    win:won wind:wound write:wrote
""")
BEFORE = re.compile(r"re|over|under|with|up|out|mis|fore")  # oversee is as irregular as see
# Stressed on their last syllable, or spelt in the British way.
DOUBLED = split_words("""
    abet abhor acquit admit allot annul cancel channel commit compel concur confer control counsel defer deter dial
    dispel distil embed emit enrol equip excel expel fuel fulfil impel incur infer instil kidnap label level marshal
    model occur omit outfit panel patrol permit prefer program propel rebut recur refer refit regret remit repel
    signal submit total transfer transmit travel tunnel unplug worship
""")
SHORT = re.compile(r"[^aeiou]*(?:qu)?[aeiou][bdfgklmnprtvz]")  # ship, plan, quiz; neither fix nor clean


def make_past_tense(base: str) -> str:
    """sign → signed, ship → shipped, oversee → oversaw."""
    if irregular := _find_irregular(base):
        return irregular
    if base.endswith("e"):
        return f"{base}d"
    if re.search(r"[^aeiou]y$", base):
        return f"{base[:-1]}ied"
    if base in DOUBLED or SHORT.fullmatch(base):
        return f"{base}{base[-1]}ed"
    return f"{base}ed"


def _find_irregular(base: str) -> str:
    if base in IRREGULAR:
        return IRREGULAR[base]
    before = BEFORE.match(base)
    rest = base[before.end() :] if before else ""
    return f"{base[: len(base) - len(rest)]}{IRREGULAR[rest]}" if rest in IRREGULAR else ""
