"""Names a relation by its verb in the past tense, whatever form the sentence has it in."""

import re


def _pairs(text: str) -> dict[str, str]:
    return {one: other for one, _, other in (pair.partition(":") for pair in text.split())}


BE = frozenset({"be", "is", "are", "am", "was", "were", "been", "being", "'s", "’s", "'re", "’re", "'m", "’m"})
IRREGULAR = _pairs("""
    begin:began become:became bring:brought build:built buy:bought choose:chose come:came do:did draw:drew drive:drove
    fall:fell feel:felt fight:fought find:found fly:flew get:got give:gave go:went grow:grew have:had hear:heard
    hold:held keep:kept know:knew lead:led leave:left lend:lent lose:lost make:made mean:meant meet:met pay:paid
    read:read rise:rose run:ran say:said see:saw sell:sold send:sent set:set sit:sat speak:spoke spend:spent
    stand:stood take:took teach:taught tell:told think:thought understand:understood win:won write:wrote put:put
    let:let cut:cut cost:cost has:had does:did
""")
PARTICIPLE = _pairs("""
    begun:began become:became chosen:chose come:came done:did drawn:drew driven:drove fallen:fell flown:flew given:gave
    gone:went grown:grew known:knew risen:rose run:ran seen:saw spoken:spoke taken:took written:wrote
""")


def past(verb: str, tag: str) -> str:
    """signs, sign, signing → signed: one relation, however the sentence puts it."""
    if tag == "VBD":
        return verb
    if tag == "VBN":
        return PARTICIPLE.get(verb, verb)
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    base = _base(verb, tag)
    if base in IRREGULAR:
        return IRREGULAR[base]
    if base.endswith("e"):
        return f"{base}d"
    if re.search(r"[^aeiou]y$", base):
        return f"{base[:-1]}ied"
    return f"{base}ed"


def _base(verb: str, tag: str) -> str:
    if tag == "VBZ":
        if verb.endswith("ies"):
            return f"{verb[:-3]}y"
        return verb[:-2] if re.search(r"(?:ss|sh|ch|x|zz|o)es$", verb) else verb.removesuffix("s")
    if tag == "VBG" and verb.endswith("ing") and len(verb) > 5:
        stem = verb[:-3]
        if f"{stem}e" in IRREGULAR:
            return f"{stem}e"
        doubled = re.search(r"([bdgmnprt])\1$", stem)
        return stem[:-1] if doubled and stem[:-1] in IRREGULAR else stem
    return verb
