"""Decides whether something is to be paid: an invoice with an amount and a due term is; a receipt or a price is not."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from gristmill.models.language.hints.indirect import HEARD_IN
from gristmill.models.language.hints.model import (
    About,
    FoundAmount,
    FoundDate,
    FoundReference,
    Noise,
    Payment,
    TextEvidence,
)
from gristmill.models.language.hints.opinion import sounds_like_bill, sounds_like_receipt
from gristmill.models.language.hints.phrases import compile_phrases
from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.words import Words

BILL = compile_phrases(
    r"""
    invoices?|invoiced|bill|final account|fee note|payment reminder|statement of account|premium notice
    honorarnote|kostennote|zahlungsaufforderung|vorschreibung|fakturen?|\w*rechnung(?:en)?|rechnungs(?:betrag|nummer|nr)|mahnung|zahlungserinnerung|\w*bescheid
    faktur[auy]|zálohov\w+|vyúčtování|daňový doklad|předpis platby|upomínk[auy]
    račun(?:a|e|i|om|u)?|fakture|predračun\w*|proforma|pro ?- ?forma|opomen[aue]|uplatnic\w+
    """
)
# What is owed without a bill: beside an amount and a day by which it is due, it is to be paid.
DUTY = compile_phrases(
    r"""
    fees?|dues|rent|instal+ments?|premiums?|(?:advance |down |quarterly )?payment|deposit|subscription|tax|taxes|rates|
    + contributions?|duty|duties|levy|fine|penalty|balance|arrears|debt|surcharge
    \w*(?:beitrag|gebühr|gebühren|prämie|miete|steuer|abgaben?|honorar|honorarnote|vorschreibung|anzahlung|nachzahlung|kosten|strafe|
    + bußgeld|pacht|kaution|schuld|forderung|entgelt|umlage)|rate
    pojistn\w+|poplat\w+|nájem|nájmu|nájemn\w+|záloh\w+|daň|daně|dph|příspěv\w+|pokut\w+|splátk\w+|dluh\w*|kauc\w+|
    + vodné\w*|stočné\w*|školn\w+|členské\w*|doplat\w+
    premij\w+|najamnin\w*|najam|stanarin\w*|porez\w*|pristojb\w*|članarin\w*|predujam\w*|pdv|doprinos\w*|naknad\w+|
    + kazn\w+|rat[aeu]|dug|duga|školarin\w*|pričuv\w+
    """
)
# A bill that is handed over is to be paid, whether or not its mail says so.
PRESENTED = compile_phrases(
    r"""
    (?:attached|enclosed|enclose|herewith|here's|here is|sending) (?:\w+ ){0,6}(?:invoice|bill)
    (?:invoice|bill|final account|fee note|paperwork) (?:\w+ ){0,9}(?:attached|enclosed|attachment)
    (?:invoice|bill) (?:\w+ ){0,9}(?:comes to|amounts to|totals|is for)
    (?:anbei|beiliegend|im anhang|in der anlage|übersenden?|sende[n]? (?:ich|wir)|übermitteln|
    + schicken?) (?:\w+ ){0,6}(?:\w*rechnung|faktura|honorarnote)
    (?:hier|hier ist) (?:\w+ ){0,3}(?:\w*rechnung|faktura|honorarnote)
    (?:tady|zde) (?:\w+ ){0,4}faktur\w+|evo (?:\w+ ){0,3}račun\w*
    in rechnung (?:zu )?stelle\w*|\w*rechnung (?:\w+ ){0,3}über
    (?:v příloze|zasílám\w*|posílám\w*|přikládám\w*) (?:\w+ ){0,6}faktur\w+
    faktur\w+ (?:\w+ ){0,6}(?:v příloze|ve výši|na částku)|fakturujeme
    (?:u privitku|u prilogu|šaljem\w*|dostavljam\w*) (?:\w+ ){0,6}račun\w*
    račun\w* (?:\w+ ){0,6}(?:u privitku|u prilogu|u iznosu|na iznos)|fakturiramo
    """
)
FAILED = r"""
    (?:couldn't|could not|unable to|weren't able to|failed to|tried to) (?:take|charge|process|collect|debit)
    card (?:was |has been |is |has )?(?:declined|expired|rejected)|(?:did not|didn't) go through
    (?:karte|zahlung|lastschrift) (?:\w+ ){0,4}(?:abgelehnt|abgelaufen|fehlgeschlagen|zurückgegeben|rückgebucht)
    konnten? (?:\w+ ){0,9}nicht (?:abgebucht|eingezogen|belastet|abbuchen|einziehen)
    (?:platba|platbu|kartu|kartou|inkaso) (?:\w+ ){0,4}(?:nezdařila|selhala|neproběhla|nepodařilo|zamítnuta|odmítnuta)
    (?:plaćanje|kartic\w+|naplata) (?:\w+ ){0,4}(?:nije uspjel\w|odbijen\w*|neuspješn\w*|istekla)
"""
DEMAND = compile_phrases(
    FAILED,
    r"""
    your payment of|(?:up)?on (?:receipt of )?(?:your )?payment|nach zahlungseingang|zahlungskonditionen|konditionen
    po (?:úhradě|zaplacení|připsání)|nakon (?:uplate|primitka)|za uplatu|iznos za uplatu
    falls? due|(?:in|into|on|to) (?:our|the) account|by return|settlement
    (?:amount|total|balance) due|payment (?:is )?due|(?:payment )?terms|due date|amount payable
    (?:please|kindly) (?:pay|remit|transfer|settle|arrange (?:for )?payment|make (?:a |the )?payment)
    (?:payment|charge|transaction) (?:has |was )?(?:failed|declined)|could not (?:charge|process|collect)
    zahlung (?:ist |wurde )?(?:fehlgeschlagen|abgelehnt)|platba (?:se nezdařila|selhala|neproběhla)
    plaćanje nije uspjelo
    (?:must|to) be paid|is payable|payable (?:by|within|immediately|upon|on)|is due|due (?:by|on|in|within)
    (?:pay|transfer|remit|settle) (?:the |this |your |our )?(?:full |outstanding )?(?:amount|invoice|sum|total|bill|fee)
    outstanding|unpaid|overdue|past due|net \d{1,2}|pay (?:the|this|your|by|it|us|now|immediately|online)
    rückstand
    zahlbar|zahlungsziel|zahlungsfrist|fällig\w*|überweis\w+|zu (?:zahlen|bezahlen|entrichten)
    zahlen sie|begleich\w+|zahlbetrag|einzahlen
    offene[rn]? (?:betrag|rechnung|posten|forderung)|noch offen|tage netto
    in rechnung|schulden sie|schulden \w+|zahlungsaufforderung|zahlung (?:bis|innerhalb|binnen)
    splatn\w+|k (?:úhradě|zaplacení)|uhraďte|uhradit|zaplaťte|zaplatit|splátk\w+
    o (?:\w+ ){0,2}(?:úhradu|platbu|zaplacení)
    dlužn\w+|nedoplat\w+|neuhrazen\w*|variabilní symbol
    rok (?:za )?plaćanja|plaćanja|platiti|platite|uplatite|uplatiti|uplatu|podmirite|podmiriti|podmirenje
    dospije\w+|dospjel\w+|plativ[oa]|za platiti|nepodmiren\w*|dugovanj\w*|poziv na broj|iznos za plaćanje
    """,
)
WISH = r"""
    (?:please|kindly) (?:pay|remit|transfer|settle|arrange (?:for )?payment|make (?:a |the )?payment)
    (?:must|has to|have to|needs to|to) be paid
    (?:ask|request|urge) you to (?:pay|remit|transfer|settle)
    (?:pay|transfer|remit|settle) (?:the|this|your|our) (?:full |outstanding )?(?:amount|invoice|sum|total|bill|fee)
    überweisen sie|zahlen sie|begleichen sie|bitte (?:\w+ ){0,8}(?:überweisen|begleichen|zahlen|bezahlen|einzahlen)
    um (?:\w+ ){0,3}(?:überweisung|begleichung|zahlung)|zu (?:überweisen|zahlen|bezahlen|begleichen|entrichten)
    (?:třeba|nutné|potřeba) (?:\w+ ){0,3}(?:uhradit|zaplatit)|potrebno (?:\w+ ){0,3}(?:platiti|uplatiti|podmiriti)
    vyzýváme (?:\w+ ){0,3}k (?:\w+ ){0,2}(?:zaplacení|úhradě)|pozivamo (?:\w+ ){0,9}(?:platite|uplatite|podmirite)
    uhraďte|zaplaťte|o (?:\w+ ){0,2}(?:úhradu|zaplacení|platbu)|(?:prosíme|prosím) (?:\w+ ){0,6}(?:uhrad\w+|zaplat\w+)
    (?:molimo|molim) (?:\w+ ){0,6}(?:uplat\w+|plati\w*|podmir\w+)|uplatite|podmirite
"""
WISHES = compile_phrases(WISH, FAILED)
ORDER_TO_PAY = compile_phrases(
    WISH,
    r"""
    (?:amount|total|balance) due|payment (?:is )?due|overdue|past due|payable (?:by|within|upon|immediately)|is due
    zahlbar|fällig\w*
    k úhradě|splatn\w+
    za uplatu|rok plaćanja
    dospije\w+|iznos za plaćanje|plativ[oa]|za platiti
    """,
)
# Beside an amount it says all: somebody waits for money.
OWING = compile_phrases(
    r"""
    unpaid|overdue|past due|arrears|(?:outstanding|open) (?:balance|amount|invoice|sum)|not (?:yet )?(?:been )?paid
    rückstand|zahlungsrückstand|unbezahlt\w*|(?:noch )?nicht (?:bezahlt|beglichen)|offene[rn]? (?:betrag|rechnung|
    + posten|forderung)
    dluh|dluhu|dlužn\w+|nedoplat\w+|neuhrazen\w*|nezaplacen\w*|po splatnosti
    dug|duga|dugovanj\w*|dospjel\w+|nepodmiren\w*|neplaćen\w*|nije plaćen\w*
    """
)
UNPAID = compile_phrases(
    r"""
    not (?:yet )?(?:been )?(?:paid|received)|unpaid|overdue|outstanding|failed|declined
    noch nicht (?:bezahlt|eingegangen|beglichen|erhalten)|unbezahlt|nicht bezahlt|keinen? zahlungseingang|keine zahlung
    offen\w*|fehlgeschlagen|abgelehnt
    neuhrazen\w*|nebyla (?:dosud )?(?:uhrazena|zaplacena)|nezaplacen\w*|neevidujeme|zamítnut\w*|neúspěšn\w*
    nije (?:još )?(?:plaćen\w*|podmiren\w*|evidentiran\w*|uplaćen\w*)|nismo (?:za)?primili|nepodmiren\w*|neplaćen\w*
    neuspješn\w*
    """
)
PAID = compile_phrases(
    r"""
    paid in full|(?:has|have) been paid|was paid|already paid|paid (?:on|with|by|via)|paid :|\( paid \)|(?:amount|
    + date) paid
    we'll collect|(?:we|will) (?:will )?(?:automatically )?(?:collect|debit|charge) (?:this|it|the|your)|
    + for your (?:records|files)
    set off against|deducted from
    payment (?:has been |was )?(?:received|successful|confirmed|processed|confirmation)
    (?:received|processed) (?:your|the) payment|(?:thank you|thanks) for your (?:payment|purchase)
    receipt for|your receipt|payment receipt|successfully (?:charged|paid)
    (?:was|been|be) (?:automatically )?(?:charged|debited|collected)|automatic payment|autopay|direct debit
    nothing to pay|no payment (?:is )?(?:required|necessary|due)
    bezahlt|beglichen|(?:dankend|betrag) erhalten|zahlung (?:ist |wurde )?(?:erhalten|eingegangen|bestätigt)
    zahlungseingang (?:bestätigt|erhalten|am)|zahlungsbestätigung|quittung|kassenbon|\w*lastschrift\w*
    abgebucht|eingezogen|\w*einzug\w*|buchen (?:wir )?(?:\w+ ){0,14}ab|(?:wird|werden) (?:\w+ ){0,8}belastet|
    + gutgeschrieben
    ausgeglichen|zahlung (?:\w+ ){0,6}(?:erhalten|eingegangen)|dank für ihre zahlung|ihre zahlung ist
    uhrazeno|zaplaceno|byla? (?:uhrazen\w*|zaplacen\w*)|platba (?:byla |úspěšně )?(?:přijata|proběhla|úspěšná)
    přijali jsme (?:vaši )?platbu|potvrzení o (?:platbě|zaplacení|úhradě)|účtenk\w*|inkas\w*|strhne\w*|stržen\w*
    platba (?:\w+ ){0,12}(?:provedena|zaplacena|přijata|odeslána)|(?:uhrazena?|zaplacen[aoéý]?) (?:\w+ ){0,3}kart\w+|
    + zaplacené přijali
    děkujeme za (?:platbu|úhradu)|neplaťte|již uhrazen\w*
    uplata (?:\w+ ){0,8}(?:izvršena|provedena)|plaćen[aoi]? karticom
    plaćeno|podmireno|uplata (?:je )?(?:zaprimljena|primljena|evidentirana)|zaprimili smo (?:vašu )?uplatu
    potvrda o (?:plaćanju|uplati)|je plaćen\w*|hvala na uplati|tereć\w*|trajn\w+ nalog\w*|naplaćen\w*
    """
)
PAYING_US = compile_phrases(  # the writer pays us, and speaks of our bill
    r"""
    (?:we|i) (?:have )?received your invoice|(?:we|i) (?:will|shall) (?:pay|transfer|settle)|we'll (?:pay|transfer|
    + settle)
    (?:haben|habe) ihre rechnung (?:\w+ ){0,4}erhalten|(?:werden|werde) (?:\w+ ){0,9}(?:überweisen|bezahlen|begleichen)
    (?:obdrželi|dostali) jsme vaši fakturu|zaplatíme|uhradíme
    primili smo vaš račun|platit ćemo|uplatit ćemo|podmirit ćemo
    """
)
OFFER = compile_phrases(
    r"""
    quotation|(?<!please )quote(?! (?:the|your|tax|this|our|reference|invoice|number))|our offer|special offer|
    + price list|estimate|credit note|refund\w*|delivery note
    angebot\w*|kostenvoranschlag|preisliste|gutschrift|\w*erstattung|lieferschein
    nabídk\w+|ceník\w*|dobropis\w*|vrácení peněz|dodací list
    ponud\w+|cjenik\w*|odobrenje|povrat novca|dostavnica|otpremnica
    """
)
CONTRACT = compile_phrases(
    r"""
    (?:\w+ )?(?:agreement|contract|terms and conditions|terms of (?:service|use|trade))
    \w*vertrag|\w*vereinbarung|\w*geschäftsbedingungen|agb
    smlouva|dodatek|obchodní podmínky|ugovor|aneks|opći uvjeti
    """
)
NEVER_A_BILL = frozenset({"newsletter", "auto_reply", "bounce", "read_receipt", "calendar_reply"})
NEAR = 160  # characters between what is owed, its amount and its day
CONDITIONAL = compile_phrases(
    "who|wer|kdo|tko|members|once|after|nach|nachdem|sobald|jakmile|poté|čim|nakon|if|should|falls|sollten|sofern|wenn|pokud|jestliže|ako|ukoliko"
)


@dataclass(frozen=True, slots=True)
class Signs:
    """What a text has of a bill."""

    billed: bool  # it speaks of a bill, or has the number of one
    numbered: bool
    ordered: bool  # it says that something is payable
    wished: bool  # it asks the reader to pay
    presented: bool  # it hands a bill over
    owed: bool  # somebody waits for money
    contract: bool  # contracts and terms of trade speak of bills, too
    account: bool

    def say_payment(self, *, amount: bool, due: bool) -> bool:
        if self.presented or (self.wished and amount):
            return True
        if self.owed and not self.contract:
            return True
        told = (self.billed and (amount or due or self.account)) or (
            self.ordered and (amount or self.account) and (due or self.account)
        )
        return told and (self.wished or (not self.contract and (self.numbered or amount)))


def find_payment(
    words: Words,
    sentences: Sequence[Sentence],
    amounts: Sequence[FoundAmount],
    dates: Sequence[FoundDate],
    references: Sequence[FoundReference],
    noise: Sequence[Noise],
    about: About,
) -> Payment | None:
    """What is to be paid, with the words that say so; where an amount is named, a second opinion is heard.

    It finds a payment in words that no rule knows, of texts that somebody wrote to us: papers, minutes and pages name
    amounts that nobody asks for. It takes a payment back only if it is very sure: that is a receipt.
    """
    today = about.written_at.date()
    found = _find_by_rules(words, sentences, amounts, dates, references, noise, today)
    if not amounts:
        return found
    if found is not None:
        return None if not _has(sentences, UNPAID) and sounds_like_receipt(sentences) else found
    if about.type not in HEARD_IN:
        return None
    if any(one.kind in NEVER_A_BILL for one in noise) or is_contract(sentences) or _has(sentences, OFFER):
        return None
    if _is_settled(sentences) or _has(sentences, PAYING_US) or not sounds_like_bill(sentences):
        return None
    places = [one.evidence.start for one in amounts]
    named = [one for one in sentences if any(one.start <= place < one.stop for place in places)]
    return _make_payment(words, named, amounts, _find_due(named, dates) or _find_coming(named, dates, today))


def _find_by_rules(
    words: Words,
    sentences: Sequence[Sentence],
    amounts: Sequence[FoundAmount],
    dates: Sequence[FoundDate],
    references: Sequence[FoundReference],
    noise: Sequence[Noise],
    today: date,
) -> Payment | None:
    presented = [one for one in sentences if PRESENTED.search(one.low) and not FUTURE.search(one.low)]
    kinds = {one.kind for one in references}
    billed = "invoice" in kinds or _has(sentences, BILL)
    if not (amounts or billed or presented or "iban" in kinds):  # most mails have nothing of that
        return None
    owed = _find_owed(sentences, amounts, dates)
    demands = [one for one in sentences if DEMAND.search(one.low) or UNPAID.search(one.low)] or presented or owed
    if not demands or _is_settled(sentences):
        return None
    wished, ordered = _has(demands, WISHES), _has(demands, ORDER_TO_PAY)
    if not wished and _has(sentences, PAYING_US):
        return None
    promoted = any(one.kind == "newsletter" for one in noise)
    if (promoted and not billed) or (_has(sentences, OFFER) and not (billed and ordered)):
        return None
    amount, due = _choose_amount(demands, amounts), _find_due(demands, dates)
    signs = Signs(
        billed=billed,
        numbered="invoice" in kinds,
        ordered=ordered,
        wished=wished,
        presented=bool(presented),
        owed=not promoted and (bool(owed) or (amount is not None and _has(sentences, OWING))),
        contract=is_contract(sentences),
        account="iban" in kinds,
    )
    if not signs.say_payment(amount=amount is not None, due=due is not None):
        return None
    owing = [one for one in demands if DUTY.search(one.low) or DEMAND.search(one.low)]
    return _make_payment(words, demands, amounts, due or _find_coming(owing, dates, today))


def _make_payment(
    words: Words, demands: Sequence[Sentence], amounts: Sequence[FoundAmount], due: FoundDate | None
) -> Payment:
    amount = _choose_amount(demands, amounts)
    places = [one.evidence for one in (amount, due) if one]
    places += [_point_at(words, one, DEMAND) for one in demands[:2]]
    return Payment(amount, due.day if due else None, tuple(dict.fromkeys(places)))


def _find_coming(demands: Sequence[Sentence], dates: Sequence[FoundDate], today: date) -> FoundDate | None:
    """The last day to come that is named beside the amount: am 10.12. steht die Vorauszahlung an."""
    ahead = [one for one in dates if one.day >= today]
    near = [one for one in ahead for part in demands if part.start <= one.evidence.start < part.stop]
    return max(near, key=lambda one: one.day, default=None)


def _has(sentences: Sequence[Sentence], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(one.low) for one in sentences)


FUTURE = compile_phrases(
    r"""
    will (?:send|receive|follow|issue)|please (?:send|issue)|need (?:the|an|your) invoice
    (?:werde|werden|(?:rechnung|faktura) (?:erhalten sie|folgt)|bitte \w+ sie)|pošleme|zašleme|pošlete|poslat ćemo|
    + poslat ću|pošaljite
    """
)


def _find_owed(
    sentences: Sequence[Sentence], amounts: Sequence[FoundAmount], dates: Sequence[FoundDate]
) -> list[Sentence]:
    """The sentences that name something owed, if an amount and a deadline stand close to it."""
    deadlines = [one.evidence.start for one in dates if one.is_deadline]
    prices = [one.evidence.start for one in amounts]

    def is_near(sentence: Sentence, places: Sequence[int]) -> bool:
        return any(sentence.start - NEAR <= one <= sentence.stop + NEAR for one in places)

    return [one for one in sentences if DUTY.search(one.low) and is_near(one, prices) and is_near(one, deadlines)]


def is_contract(sentences: Sequence[Sentence]) -> bool:
    """Whether the text begins as a contract or as terms of trade, which say how bills are paid in general."""
    return any(CONTRACT.search(one.low) for one in sentences[:2])


def _is_settled(sentences: Sequence[Sentence]) -> bool:
    """Whether it was paid, or is collected without the reader; `if you have already paid` says neither."""
    if any(UNPAID.search(one.low) for one in sentences):
        return False
    return any(PAID.search(one.low) and not CONDITIONAL.search(one.low) for one in sentences)


def _find_due(demands: Sequence[Sentence], dates: Sequence[FoundDate]) -> FoundDate | None:
    """The deadline in a sentence about paying, or in the next cell of a table; else the last one of the text."""
    deadlines = [one for one in dates if one.is_deadline]
    for sentence in demands:
        for one in deadlines:
            if sentence.start <= one.evidence.start <= sentence.stop + 3:
                return one
    return deadlines[-1] if deadlines else None


def _choose_amount(demands: Sequence[Sentence], amounts: Sequence[FoundAmount]) -> FoundAmount | None:
    """The largest amount beside the words about paying; else the largest of all: totals are larger than their parts."""
    near = [one for one in amounts for sentence in demands if sentence.start <= one.evidence.start <= sentence.stop + 3]
    return max(near or amounts, key=lambda one: one.value, default=None)


def _point_at(words: Words, sentence: Sentence, pattern: re.Pattern[str]) -> TextEvidence:
    """The words of the text that a pattern found in the folded sentence."""
    match = pattern.search(sentence.low)
    if match is None:
        return sentence.get_evidence(words.text)
    first = sentence.first + sentence.low.count(" ", 0, match.start())
    last = sentence.first + sentence.low.count(" ", 0, match.end())
    start, stop = words[first].start, words[min(last, sentence.after - 1)].stop
    return TextEvidence(start, stop, words.text[start:stop])
