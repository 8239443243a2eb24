"""The phrases by which people ask for something in four languages, and those that only look so."""

from gristmill.models.language.hints.phrases import compile_by_language, compile_phrases
from gristmill.models.language.hints.words import spell

ASKING = {
    "en": r"""
        (?:can|could|would|will) (?:you|u|one of you|someone|somebody|anyone|anybody)
        (?:are|were) you able to
        (?:would|do) you mind
        please(?! (?:find|see attached|see below|note|be advised|be aware|be informed|accept|excuse|forgive|
        + disregard|ignore))
        pls|plz
        kindly(?! (?:note|find))
        let (?:me|us) know
        get back to (?:me|us)
        keep (?:me|us) (?:posted|informed|updated)
        (?:i|we) (?:still |also |just |urgently )?(?:need|require) (?:you|your|the|a|an|to know|this|that|these|it|
        + more|some)
        (?:i|we) (?:would|'d) (?:really )?(?:like|need|appreciate|be grateful)(?: it)?(?: if)? (?:you|your)
        (?:i|we) (?:would|'d) like to (?:know|ask|have|get|receive|see)
        (?:i'd|we'd) (?:like|appreciate|need) (?:it if you|you|your|to (?:know|ask|have|get))
        (?:we|i) (?:ask|request|urge|remind) you
        asking you to
        you are (?:kindly |hereby )?(?:asked|requested|required|invited) to
        you (?:must|need to|have to)
        you should(?! (?:receive|have received|see|find))
        (?:don't|do not) forget to
        remember to
        make sure (?:that|to|you)
        be sure to
        (?:await|awaiting|waiting for|wait for|waiting on) your
        (?:looking|look) forward to (?:your|hearing|receiving)
        (?:approval|confirmation|signature|feedback|decision|input|reply|response|action) (?:is |
        + are )?(?:still )?(?:needed|required|missing|pending)
        (?:needs|requires|require|need) your
        asap|as soon as possible|at your earliest convenience
        any (?:news|update|updates|progress) (?:on|about|regarding)
        (?:what|how) about (?:you|we|monday|tuesday|wednesday|thursday|friday|next)
        (?:when|where|what time) (?:can|could|would|do|does|will|should) (?:you|we|i)
        has anyone|does anyone|who can|who could
        (?:would|'d|i'd|we'd) (?:really |very much |also )?appreciate
        (?:i|we) (?:expect|demand|insist on|want) (?:a|an|the|my|our|your|you|immediate|to)
        money back
        rsvp|r \. s \. v \. p
        (?:requests?|requested|asks? for|asked for|wants|awaits) your
        give (?:me|us) a shout|just shout|if you want (?:it|them|one)
        you (?:were|are|have been) (?:\w+ )?(?:requested|asked|invited|added as|named as)
        for your (?:signature|approval|review|feedback|decision|comments|confirmation|action)
        ^(?:confirm|review|approve|sign|send|forward|call|reply|respond|check|submit|complete|return|provide|fill|fix|prepare|
        + update|remind|schedule|book|order|pay|add|upload|bring|register|vote|take|give|tell|ask|have a look|look)
        +  (?:the|your|me|us|this|that|it|all|to|and|him|her|them|back|out|by|a|an|at|for|into)
        , (?:then )?(?:please )?(?:return|send|call|reply|submit|complete|fill|sign|confirm|upload|register|let|
        + contact|change|
        + update|replace|reset|renew|verify|check|review|bring|add|remove|stop|use|ask|tell|give|take|get)
        +  (?:the|your|us|me|it|back|out|in|this)
    """,
    "de": r"""
        bitte(?! (?:beachten sie|beachte|entschuldig\w*|um entschuldigung|um verständnis|nicht auf diese|
        + nicht antworten|ignorieren))
        (?:könnten|können|würden|möchten|wollen) sie(?! (?:sich|uns jederzeit|jederzeit|gerne|auch|online|hier|
        + die rechnung|ihre rechnung))
        (?:kannst|könntest|würdest|magst|willst|hast) du
        (?:könnt|könntet|würdet|mögt|habt) ihr
        (?:gib|gebt|geben sie|sag|sagt|sagen sie) (?:mir |uns |doch |kurz |bitte )*bescheid
        melde(?:n sie|t)? (?:dich|sich|euch)
        (?:ich|wir) (?:brauche|brauchen|benötige|benötigen|bitte|bitten|ersuche|ersuchen)
        (?:brauche|benötige|bitten|benötigen|brauchen|ersuchen) (?:ich|wir)
        (?:sie|du) (?:müssen|musst|sollten|solltest)
        (?:müssten|sollten) sie(?! (?:den betrag|die zahlung|bereits|noch|weitere|fragen|keine))
        (?:werden|wird|sind) (?:sie )?(?:hiermit )?(?:gebeten|aufgefordert|angehalten)
        um (?:\w+ ){0,3}(?:rückmeldung|antwort|freigabe|bestätigung|prüfung|zusendung|unterzeichnung|rückruf|
        + begleichung|überweisung|stellungnahme)
        (?:freue|freuen) (?:mich|uns) (?:auf|über) (?:ihre|deine|eure)
        warten? (?:\w+ ){0,2}auf (?:ihre|deine|eure|dein|ihr)
        vergiss nicht|vergessen sie nicht|nicht vergessen
        ^(?:schick|sende|prüf|prüfe|schau|ruf|mach|kümmere|erledige|bestätige|unterschreib|leite|trag|klär|kläre|
        + übernimm|korrigier|ergänze|frag|erinner|bestell|buch)\w* (?:mir|uns|das|die|den|dem|mal|bitte|dir|dich|es|
        + ihn|sie|nochmal|noch|sich|beim|bei|mich|eine|einen)
        ^(?:senden|schicken|prüfen|überprüfen|bestätigen|unterschreiben|unterzeichnen|übermitteln|überweisen|zahlen|
        + begleichen|melden|rufen|teilen|geben|füllen|reichen|leiten) sie
        zu erledigen|handlungsbedarf
        (?:ist|sind) (?:noch )?zu (?:prüfen|klären|unterschreiben|zahlen|begleichen|ergänzen)
        (?:gibt es|gibts) (?:schon |bereits )?(?:neuigkeiten|was neues|einen stand|ein update)
        wie ist (?:der|denn der) stand
        (?:ich|wir) (?:erwarte|erwarten|verlange|verlangen|fordere|fordern)
        (?:erwarte|erwarten|fordere|fordern|verlange|verlangen) (?:ich|wir)
        geld zurück
        zur (?:unterschrift|freigabe|prüfung|unterzeichnung|stellungnahme|durchsicht|bestätigung)
        mit der bitte um(?! (?:kenntnisnahme|verständnis|beachtung))
    """,
    "cs": r"""
        prosím|prosíme|poprosím
        (?:po)?prosil[ai]? (?:bych|bychom)
        (?:mohl|mohla|mohli|mohly|nemohl|nemohla|nemohli) (?:by|bys|byste|bychom)
        (?:můžete|můžeš|můžeme|nemůžeš|nemůžete)(?! (?:se kdykoli|kdykoli|nás kontaktovat|také|najít|najdete|
        + sledovat|využít|zobrazit|stáhnout))
        (?:dejte|dej|dát) (?:mi |nám |prosím )*vědět
        kontaktujte (?:mě|nás)
        potřebuji|potřebuju|potřebujeme|žádám|žádáme|požadujeme|vyzýváme
        potřeboval[ai]? (?:bych|bychom)
        (?:musíte|musíš|měl bys|měla bys|měli byste|je třeba|je nutné|je potřeba|je zapotřebí|nutno)(?! (?:nic|již))
        nezapomeňte|nezapomeň
        (?:čekáme|čekám|čekají) (?:\w+ )?na (?:vás|vaše|vaši|tvou|tvé|tvoje|tvůj|odpověď|potvrzení|schválení|podklady)
        (?:těším|těšíme) se na (?:vaši|tvou|odpověď)
        k (?:podpisu|odsouhlasení|schválení|vyjádření|připomínkám|potvrzení)
        jak to vypadá|jaký je stav
        očekávám|očekáváme|požaduji|požaduju
        kdy (?:by|můžete|můžeš|bude|budete|to bude)
    """,
    "hr": r"""
        (?:molim|molimo|zamoljavamo)(?! (?:obratite pažnju|uzmite|da ne|ne odgovarajte|vas za razumijevanje|
        + za razumijevanje))
        (?:za)?mol(?:io|ila|ili) (?:bih|bismo)
        (?:možete|možeš|možemo|može|biste|bi|bismo|hoćete|hoćeš|imate|imaš|jeste|jesi|jesu|je|hoće|ima) li
        (?:mogao|mogla|mogli) (?:bi|bih|biste|bismo)
        mogli biste
        (?:javite|javi) (?:mi|nam|se|kada|kad|ako|da|je|jesu)
        (?:trebam|trebamo|trebate|trebaš|treba)(?! (?:ništa|li))
        treba(?:o|la|lo|li) bi(?:h|ste|smo)?
        (?:potrebno|nužno) je(?! (?:ništa))
        potrebna je|potreban je|potrebni su
        morate|moraš|dužni ste
        ne zaboravi(?:te)?
        (?:čekamo|čekam|očekujemo) (?:vaš|vašu|vaše|tvoj|tvoju|odgovor|potvrdu)
        (?:veselim|veselimo) se (?:vašem|tvom) odgovoru
        zahtijevam|zahtijevamo|tražim|tražimo|očekujem|pozivamo vas da
        kada (?:će|ćemo|možete|možeš|biste|stiže)
        kakvo je stanje
        na (?:potpis|odobrenje|pregled|ovjeru|potvrdu)
    """,
}
# Slavic orders are single words.
ORDERS = {
    "cs": spell(
        """pošli pošlete zašli zašlete doplň doplňte zkontroluj zkontrolujte potvrď potvrďte podepiš podepište ověř
        ověřte zavolej zavolejte připrav připravte podívej podívejte odpověz odpovězte napiš napište uhraďte zaplaťte
        zaplať vyplňte vyplň schvalte schval opravte oprav předej předejte zajisti zajistěte projdi projděte vraťte
        vrať domluv domluvte objednej objednejte zařiď zařiďte ozvěte ozvi upravte uprav dodejte dodej připomeň sdělte
        sděl"""
    ),
    "hr": spell(
        """pošalji pošaljite dostavi dostavite provjeri provjerite potvrdi potvrdite potpiši potpišite odgovori
        odgovorite nazovi nazovite pripremi pripremite pogledaj pogledajte ispuni ispunite popuni popunite platite
        plati uplatite podmirite odobri odobrite ispravi ispravite pregledaj pregledajte vrati vratite napiši napišite
        napravi napravite dogovori dogovorite naruči naručite riješi riješite podsjeti"""
    ),
}
# A sentence with a deadline asks for something if it names who has to be in time, or says must.
OBLIGED = compile_phrases(
    r"""
    me|us|everyone|everybody|each of you|all of you|team|must|have to|has to|needs? to be|should be|shall
    mir|uns|alle|jeder|euch|muss|müssen|soll|sollen|sollte|sollten|ist bis|sind bis
    mi|nám|všichni|každý|musí|mají|má být|je třeba|je nutné
    nam|svi|svatko|mora|moraju|treba|trebaju|potrebno
    """
)
# What a day is named for that nobody has to do anything for.
FORETOLD = compile_phrases(
    r"""
    (?:is|are|still) possible|free of charge|möglich|kostenlos|kostenfrei|možn[áéýoa]|možné|zdarma|moguć\w*|besplatn\w*
    will (?:be|arrive|come|have|receive|get|expire|remain|stay|take|run)|(?:is|are|remains?) (?:valid|available|open|
    + expected|
    + scheduled|planned|closed|out|away)|valid|renewed|extended|paid|arriv(?:e|es|ing)|you have access|
    + you can (?:still|use|enjoy)
    (?:wird|werden) (?:\S+ ){0,12}(?:\w*liefert|zugestellt|eintreffen|einlangen|stattfinden|gewartet|geschlossen|
    + sein|durchgeführt|
    + erfolgen|dauern|verschickt|versandt|gesendet|abgebucht|eingezogen|fertig\w*|umgestellt|abgeschlossen)
    zahlungsbedingung\w*|zahlungskonditionen|payment terms|platební podmínky|uvjeti plaćanja|rok plaćanja|splatnost\w*
    erhalten|bekommen|gültig|gilt|gelten|erfolgt|dauert|voraussichtlich|eintreffen|geliefert|zugestellt|
    + verfügbar|verlängert|bezahlt|geöffnet|geschlossen|bin|können|urlaub
    bude|budou|platí|platnost|platn[ýáé]|doruč\w+|dodáme|obdržíte|dostanete|otevřeno|zavřeno|dovolen\w+|trvá|prodloužen\w*|zaplacen\w*|uhrazen\w*|můžete
    bit će|biti će|vrijedi|važi|isporuč\w+|dobit ćete|otvoreno|zatvoreno|odmor\w*|traje|ostaje|produžen\w*|plaćen\w*|
    + otvoren\w*|možete
    """
)
PROMISED = compile_phrases(
    r"""
    (?:we|i) (?:will|shall|are going|plan|expect|aim|can|could)|we'll|i'll|you will (?:receive|get|have|hear)
    (?:wir|ich) (?:werden|werde|melden|melde|liefern|liefere|senden|sende|schicken|schicke|planen|können|kann)
    (?:werden|werde|melden|melde|liefern|senden|schicken) (?:wir|ich)|erhalten sie|bekommen sie
    (?!přijím|přijm|prosím|žádám|prim|mol|traž|čeká)\w{3,}(?:eme|íme|áme|ćemo|emo|imo|amo)
    """
)
ACTION_ITEMS = compile_phrases(
    r"""
    ^(?:action|action item|to ?(?:- ?)?do|ai|task|next step|follow ?- ?up)s?(?: \d+)?(?: \( [^)]{0,40} \))? (?::|-|–|—)…
    ^(?:nächste schritte?|další kroky?|sljedeći koraci?|idući koraci?|následující kroky?|zu erledigen|zbývá|
    + preostaje) (?::|-|–|—)…
    ^(?:aufgaben?|maßnahmen?|úkoly?|akce|zadatak|zadaci|akcija|obveza)(?: \d+)?(?: \( [^)]{0,40} \))? (?::|-|–|—)…
    ^\[ \]…
    ^☐…
    """
)
HEADING = compile_phrases(
    r"""
    (?:open )?(?:action items?|actions?|action points?|next steps?|to ?-? ?dos?|tasks?|open points?)(?: :)?
    follow ?-? ?ups?(?: :)?
    (?:offene )?(?:aufgaben|nächste schritte|maßnahmen|offene punkte|zu erledigen)(?: :)?
    (?:úkoly|další kroky|akční body|otevřené body)(?: :)?
    (?:zadaci|zadatci|sljedeći koraci|akcijske točke|otvorene točke|obveze)(?: :)?
    """
)
# What is polite, legal or technical, and asks nothing of the reader. `…` is the rest of the clause.
IDLE = {
    "en": r"""
        (?:please )?(?:do not|don't) hesitate …
        (?:please )?feel free …
        (?:if|should) you (?:should )?have (?:any |further |additional |more |other )*(?:questions?|queries|problems|
        + concerns|issues) …
        for (?:any |further |more |additional )+(?:questions?|information|details|queries) …
        (?:please )?contact (?:us|me|our \w+)(?: team)? (?:if|with|for|at|via|any) …
        let (?:me|us) know if (?:you have|there are|there is|you need|you require|anything|i can be|we can be|
        + i can help|we can help) …
        please find …
        please see (?:attached|below|the attached|enclosed) …
        (?:please )?do not (?:reply|respond) (?:to this|directly) …
        please note …
        if you (?:no longer|do not|don't) (?:wish|want) …
        (?:to )?unsubscribe …
        (?:please )?consider the environment …
        (?:if|in case) you (?:have )?received? this (?:e - mail|email|message|mail) (?:in error|by mistake) …
        if you are not the intended …
        (?:thanks|thank you) (?:in advance|for your (?:patience|understanding))
        no (?:further )?action (?:is |on your part )?(?:is )?(?:required|needed|necessary) …
        (?:you )?(?:do not|don't|needn't) (?:need|have) to …
        (?:there's |there is )?nothing (?:\w+ ){0,4}(?:to|needs?|have|need) …
        no need …
        (?:please )?(?:disregard|ignore) this …
        if you (?:have )?already (?:paid|made) …
        how are you(?: doing)? ?\?…
        how(?:'s| is) it going ?\?…
        any questions ?\?…
        i hope (?:this|you) …
        please keep this (?:e - mail|email) …
        please (?:join (?:me|us) in|arrive|have your|be reminded|remember that|stay tuned|enjoy) …
        need (?:any )?help ?\?…
        view (?:it |this \w* ?)?(?:online|in (?:your )?browser) …
        (?:is|are) subject to …
        if you need (?:any |further )?(?:help|assistance|anything) …
        (?:please )?add (?:us|\S+ @ \S+) …
    """,
    "de": r"""
        (?:bei|für) (?:weiteren |weitere |etwaigen |allen )?(?:rück)?fragen …
        (?:haben sie|hast du) (?:noch |weitere )?fragen[^.;?]*\??…
        (?:wenn|falls|sollten) (?:sie|du) (?:noch |weitere )?fragen …
        zögern sie (?:bitte )?nicht …
        zur verfügung …
        (?:anbei|im anhang|in der anlage) (?:finden|erhalten|übersenden|senden) …
        bitte beachten sie …
        (?:bitte )?antworten sie (?:bitte )?nicht …
        bitte (?:antworten sie )?nicht (?:auf diese|antworten) …
        auf diese (?:e - mail|email|nachricht) (?:bitte )?nicht …
        (?:newsletter )?(?:abmelden|abbestellen) …
        wenn sie (?:diesen newsletter|keine|den newsletter) …
        datenschutz …
        sollten sie (?:den betrag|die zahlung|bereits|diese (?:e - mail|nachricht)) …
        (?:betrachten|ignorieren) sie (?:dieses|diese|bitte) …
        wie geht (?:es dir|es ihnen|'s|s) ?\?…
        wie geht's ?\?…
        alles (?:gut|klar) ?\?…
        (?:vielen dank|danke) im voraus
        kein handlungsbedarf …
        (?:sie|du) (?:müssen|musst|brauchen|brauchst) (?:\w+ ){0,2}nichts? …
        (?:müssen|musst|brauchen|brauchst) (?:sie|du) (?:\w+ ){0,3}nichts? …
        (?:es )?ist (?:\w+ ){0,2}nichts …
        nichts (?:\w+ ){0,2}(?:zu|unternehmen|veranlassen) …
        bitte (?:bewahren|entschuldigen) sie …
        nehmen sie (?:jederzeit |gerne )?kontakt …
        (?:wir )?bitten (?:wir )?(?:sie )?um (?:ihr )?verständnis …
        sie können (?:uns|sich|jederzeit|gerne|die) …
    """,
    "cs": r"""
        v případě (?:dotazů|jakýchkoli|jakýchkoliv|potřeby|nejasností|otázek|dalších|problémů) …
        neváhejte …
        (?:prosím |prosíme )?(?:na tento (?:e - mail|email) )?(?:prosím )?neodpovídejte …
        (?:pokud|kdybyste|budete - li|máte - li) (?:máte |mít |měli )?(?:jakékoli |jakékoliv |nějaké |
        + další )?(?:dotaz|dotazy|otázky|nejasnosti) …
        odhlá(?:sit|šení) …
        v příloze (?:naleznete|zasíláme|posílám|posíláme|najdete) …
        (?:jsme|jsem) (?:vám )?k dispozici …
        jak se (?:máte|máš|daří) ?\?…
        předem (?:děkuji|děkujeme|díky)
        nemus(?:íte|íš) …
        není (?:třeba|nutné|potřeba) …
        není (?:nic|žádn\w+|již|už) …
        (?:už|již) (?:to )?(?:nech|nechte) …
        (?:prosíme |prosím )?(?:tento e - mail|tuto zprávu|tuto upomínku) (?:\w+ )?(?:ignorujte|považujte) …
        pokud jste (?:již|už|fakturu|částku|platbu|mezitím) …
        (?:prosíme |prosím )?o (?:strpení|pochopení) …
        děkujeme za pochopení
    """,
    "hr": r"""
        za (?:sva |dodatna |dodatne |više |eventualna |bilo kakva )+(?:pitanja|informacije|informacija|upite) …
        (?:ukoliko|ako) imate (?:bilo kakvih |dodatnih |još |pitanja|bilo) …
        slobodno (?:nas |mi |nam )?(?:se )?(?:javite|kontaktirajte|nazovite|obratite) …
        (?:vam )?(?:smo|stojimo) (?:vam )?na raspolaganju …
        (?:molimo |molim )?(?:vas )?(?:ne odgovarajte|nemojte odgovarati) …
        odjav(?:a|ite|iti) …
        u (?:privitku|prilogu) (?:vam )?(?:šaljem|šaljemo|dostavljamo|se nalazi|možete) …
        kako (?:si|ste) ?\?…
        (?:hvala|zahvaljujem\w*) unaprijed
        unaprijed (?:hvala|zahvaljujem\w*)
        nije (?:potrebno|nužno) …
        ne (?:treba|trebate|trebaš|trebamo|morate|moraš) (?:\w+ ){0,2}ništa …
        ne (?:trebate|trebaš|morate|moraš) …
        (?:ukoliko|ako) ste (?:već|račun|u međuvremenu) …
        molimo (?:vas )?za (?:strpljenje|razumijevanje) …
        obratite nam se …
    """,
}
find_asks, find_rests = compile_by_language(ASKING), compile_by_language(IDLE)
ALL_ORDERS = {**ORDERS, "": ORDERS["cs"] | ORDERS["hr"]}


def is_asking(low: str, language: str) -> bool:
    """Whether the words of a folded sentence ask for something, by the phrases of its language."""
    if find_asks(language).search(low):
        return True
    orders = ALL_ORDERS.get(language)
    return orders is not None and not orders.isdisjoint(low.split())


def drop_idle_phrases(low: str, language: str) -> str:
    """The sentence without what is mere form."""
    return find_rests(language).sub(" ", low).strip(" .,;!")
