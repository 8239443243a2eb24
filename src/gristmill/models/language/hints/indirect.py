"""The phrases by which people ask without asking: something is missing, broken or unclear, or somebody waits.

They are heard in what people write to each other, not in reports and manuals.
"""

from gristmill.models.language.hints.phrases import compile_by_language, compile_phrases

HEARD_IN = frozenset({"email", "user_input", "user_task", "scheduled", "bugtracker"})
HINTING = {
    "en": r"""
        (?:am|are|is|i'm|we're|it's|still|there's) (?:still |currently |only |now )?missing
        (?:i|we) (?:still |now )?(?:miss|lack)
        (?:haven't|hasn't|have not|has not|didn't|did not) (?:yet |still |even |ever )?(?:heard|received|got|gotten|
        + seen|
        + replied|answered|responded|arrived|come|shown|show|turned)
        (?:i|we) (?:\w+ )?(?:never|still don't|still do not) (?:heard|received|got|have|know)
        not (?:yet |quite |entirely |really )?(?:sure|clear|certain) (?:\w+ ){0,2}(?:if|whether|what|which|when|how|who|
        + where|why)
        (?:unclear|wondering|wonder|curious) (?:\w+ ){0,2}(?:if|whether|what|which|when|how|who|why|hear|know|see)
        (?:would|it'd|that'd|i'd|we'd) be (?:\w+ ){0,3}(?:help|helpful|great|good|nice|lovely|kind|wonderful|grateful|
        + obliged|fantastic|brilliant|glad|thankful|appreciated|ideal|useful|perfect|happy) (?:\w+ ){0,3}(?:if|for|to)
        (?:if|in case) (?:you|someone|somebody|anyone|anybody|one of you) (?:could|can|would|were able)
        any chance|no chance you
        (?:told|promised|assured) (?:\w+ ){1,3}(?:that )?(?:you'd|you'll|you (?:would|will|could|can))
        (?:wants?|wanted|like|likes|liked|needs?|needed|asks?|asked|asking|begging) to (?:know|hear|talk|speak|meet|see
        +  you)
        (?:is|are|was|were|keeps?|been|has|have) (?:still |just |already )?(?:asking|asked)
        (?:is|are|i'm|we're) (?:still )?waiting (?:for|on) (?:you|your|us|our|an answer|a reply|a response|approval)
        (?:i am|i'm|we are|we're|would be|also) interested in
        (?:must|has to|have to|needs to|need to|ought to|should) be(?! (?:able|aware|noted|said|
        + with|there|here|at|fine|ok|okay|on|in|home|back))
        (?:is|are) (?:all )?(?:required|requested|expected|asked|obliged|reminded|supposed) to
        (?:i'll|i will|we'll|we will) (?:be |also )?(?:need|needing|require)
        without (?:it|them|this|that|these|which) (?:\w+ ){0,2}(?:can't|cannot|can not|are unable|won't|am unable)
        (?:i|we) (?:can't|cannot|can not|am unable to|are unable to|couldn't|could not) (?:\w+ )?(?:continue|proceed|
        + go on|
        + open|find|reach|access|log|reproduce|work|start|get)
        (?:doesn't|does not|isn't|is not|don't|do not|won't|can't|cannot|stopped) (?:\w+ )?(?:work|working|start|
        + open|load|
        + respond|answer)
        (?:is|are|was|were|came|arrived) (?:\w+ )?(?:broken|damaged|faulty|defective|cracked|leaking|incomplete|down)
        (?:please|kindly) (?:advise|confirm|respond|comment)
        (?:deal with|take care of|look into|see to|sort out) (?:this|it|that|him|her|them)
        (?:i|we) (?:leave|hand|pass) (?:it|this|that) (?:over )?to you
        (?:back|return) to us
        ^(?:\w+ , )?(?:is|are|do|does|did|has|have|can|could|will|would|shall|should|was|were) (?:it|that|this|
        + there|you|we|they|he|she|the|your|any|anyone|anybody|someone|my|our|\d+|these|those)
        let's|let us (?:get|do|make|send|have|go|meet|talk|discuss|finish)
        (?:wants?|would like|prefers?) (?:a|an|the|to|more|some|another|it|us|you)
        (?:strange|funny|odd|that|weird|terrible) (?:noise|sound|smell)|acting up|playing up
        (?:i|we|i'd|we'd) (?:would )?(?:like|want) (?:a|an|the|my|our|to|you)
        needs? (?:\w+ )?\w{3,}ing
        (?:is|are|been|be|keeps?|kept) (?:\w+ )?(?:blocking|leaking|overheating|crashing|failing|flashing|stuck|
        + blocked|overdue|wrong)
        (?:crashes|crashed|leaks|leaked|fails|failed|complains?|complained|a complaint|serious problem)
    """,
    "de": r"""
        (?:fehlt|fehlen|fehlte) (?:mir|uns|ihm|ihr|noch|leider|hier|immer|aber|nur|jetzt|die|der|das|ein|eine|ihre?)
        (?:mir|uns|hier|leider|noch) (?:\w+ ){0,2}(?:fehlt|fehlen)
        (?:vermisse|vermissen) (?:ich|wir)|(?:ich|wir) vermisse[n]?
        (?:nicht|nichts|keine[n]?|kein) (?:\w+ ){0,4}(?:gehört|erhalten|bekommen|angekommen|eingetroffen|geliefert|
        + eingelangt|eingegangen|gemeldet|reagiert|geantwortet)
        immer noch (?:nicht|nichts|kein\w*)
        (?:wäre|wären|würde|würden) (?:\w+ ){0,6}(?:nett|toll|super|hilfreich|dankbar|gut|schön|lieb|fein|verbunden|
        + helfen|freuen|hilfe|wichtig|freundlich)
        (?:hätte|hätten|hättest|hättet|wärst|weißt|kennst|schaffst|dürfte|dürften|kannst|kannste|weißte|haste|schaust|
        + rufst|machst|schickst|kümmerst|nimmst|übernimmst|magst|bräuchte|bräuchten) (?:du|sie|ihr|ich|wir|mal|bitte|
        + gerne)
        (?:ich|wir) (?:bräuchte|bräuchten|hätte|hätten|wüsste|wüssten)
        (?:weiß|wissen|unklar|nicht klar|nicht sicher|unsicher|fraglich) (?:\w+ |, ){0,4}(?:ob|wie|wann|wer|welche\w*)
        (?:will|möchte|wollen|möchten|fragt|fragen) (?:\w+ |, ){0,4}(?:wissen|ob|wann|wie|wo|was)
        (?:wartet|warten) (?:\w+ ){0,3}auf (?:ihre|deine|eure|unsere|antwort|rückmeldung|dich|sie|uns|freigabe)
        (?:ist|sind) (?:(?!nichts|nicht|kein)\w+ ){0,8}(?:\w{2,6}zu\w{3,}n|zu (?!erwarten|verstehen|sehen|tun|sagen|
        + rechnen|
        + beachten|danken|haben|sein)\w{4,}n)
        (?:muss|müssen|soll|sollen|sollte|sollten) (?:(?!nicht|nichts)\w+ ){0,9}werden
        (?:müsstest|müsstet|solltest|solltet|darfst|dürftest|denkst|bringst|nimmst|gehst|kommst|machst|hilfst) (?:du|
        + ihr)
        ^(?:\w+ , |und |dann )?(?!haben|sind|werden|lesen|entdeck|erleb|sichern|sparen|genies|genieß|besuch|beacht|find|
        + erhalt|profit|stöber|freuen|bestell|jetzt|kauf|schau|hol|gewinn|
        + erfahr|test|betracht|ignor)\w{2,}e?n sie(?! haben)
        lass uns|lasst uns|lassen sie uns|(?:wünscht|wünschen|wünsche) (?:sich|uns|mir|wir|noch|eine?n?)
        (?:komisch\w*|seltsam\w*|dieses|laut\w*) (?:geräusch|geruch)
        blockiert|klappert|tropft|leckt|stürzt|stürzen|streikt|reklamier\w+|reklamation|beschwer\w+|mangel|mängel
        (?:ich|wir) (?:möchte|möchten|will|wollen) (?:\w+ ){0,6}(?:zurück|haben|erhalten|wissen|bestellen|kündigen|
        + sprechen|reklamieren)
        (?:benötigt|gebraucht|erforderlich|notwendig|angefordert)
        ohne (?:die|den|das|diese\w*|ihn|sie) (?:\w+ ){0,4}(?:kann|können|geht) (?:\w+ ){0,3}nicht
        (?:komme|kommen|kann|können) (?:\w+ ){0,5}nicht (?:weiter|rein|hinein|öffnen|finden|erreichen|anmelden|
        + fortfahren)
        (?:funktioniert|funktionieren|geht|gehen|läuft|laufen|startet|klappt|öffnet|druckt) (?:\w+ ){0,3}nicht
        (?:ist|sind|war|waren|kam|kamen|wurde|hat|haben) (?:\w+ ){0,4}(?:kaputt|defekt|beschädigt|undicht|fehlerhaft|
        + unvollständig|kratzer|mangelhaft|ausgefallen|falsch)
        (?:interessiere|interessieren) (?:ich |wir )?(?:mich|uns)|(?:haben|hätten|habe|hätte) (?:\w+ )?interesse
        (?:darum |drum |bitte )kümmern|(?:um|zur) (?:\w+ )?erledigung|übernimmst|erledigst
        (?:wende|wenden) (?:mich|uns) (?:\w+ )?an sie
        um (?:\w+ ){0,3}(?:vorlage|übermittlung|mitteilung|erledigung|retournierung|anmeldung|auskunft|hilfe|zahlung|
        + einsendung)
    """,
    "cs": r"""
        (?:ne)?chybí|chybějí|postrádám\w*|scház(?:í|ejí)
        (?:ještě|stále|pořád|dosud|zatím|už) (?:\w+ ){0,3}ne(?!pot|ní|bud|jsem|mus)\w{3,}
        (?:nevíš|nevíte|víš|víte|nemáš|nemáte|nechceš|nechcete|stihneš|stihnete|zvládneš|zvládnete|přijdeš|přijdete)
        (?:rád|ráda|rádi) (?:bych|bychom)
        (?:byl|byla|byli|bylo) (?:bych|bychom|by) (?:\w+ ){0,3}(?:rád|ráda|rádi|vděčn\w+|dobré|fajn|skvělé|milé|super|
        + vhodné|potřeba|třeba)
        (?:hodil[aoy]?|stačil[aoy]?|pomohl[aoy]?|potřeboval[aoy]?|chtěl[aoi]?) (?:by|bych|bychom)
        (?:chce|chtějí|ptá|ptají|ptal[aio]?|čeká|čekají) (?:se )?(?:\w+ |, ){0,4}(?:vědět|kdy|jestli|zda|jak|co|na)
        (?:nevím|nevíme|nejsem|nejsme|není) (?:\w+ |, ){0,4}(?:jestli|zda|kdy|kdo|jak|který|jistý|jistá|jasné)
        bez (?:něj|ní|nich|toho|něho) (?:\w+ ){0,3}(?:nemůž\w+|nelze|nejde)
        (?:ať|aby) (?:je|jsou|máme|máte|mám|byl[aoiy]?)
        (?:je|jsou|bude|budou) (?:\w+ )?(?:potřeba|třeba|nutné|nutno|nezbytné|povinn\w+)
        (?:musí|musejí|mají|má) (?:\w+ ){0,6}(?:být|\w{3,}[aei]t)
        ukládá|vyzývá|vyžaduje\w*|žádá
        nefunguje|nefungují|nejde|nejdou|nespouští|nereaguje|rozbit\w+|poškozen\w+|vadn(?:ý|á|é|ou|ého)|spadl[aoy]?
        (?:mám|máme|měli|měla|měl) (?:\w+ ){0,2}zájem|zajímá (?:mě|nás|by)|zajímal[oa]? by
        pojďme|(?:přejí|přeje|přejeme|přeji) si
        blokuj\w+|teče|kape|reklam(?:ace|aci|uji|uju|ujeme)|stížnost\w*|stěžuj\w+|zasekl\w+
        (?:chci|chceme|žádám|přeji si) (?:\w+ )?(?:vrátit|\w{3,}[aei]t|o)
        čekám|čekáme|obracím se|obracíme se
        (?!ne|uzi|uzij|sled|cte|prohl|nakup|promin|omluv|odpust)\w{2,}(?:ejte|ujte|ijte|[aeiouy][dtvzn]te)(?<!mente)
        ^(?:\w+ , |ještě |jen |tak |a |prosím tě )?(?:mi |to )?(?!ne|kolej|olej|prodej|vydej|obycej|mej)\w{2,}(?:ej|
        + uj|id|is|odn[iu]|ekni)
        +  (?:mi|nám|to|ho|ji|jim|mu|se|tam|jí|prosím|už|ještě|je|si|za|na)
        (?:vyřiď|zařiď|vezmi|řekni|přines|přineste|noste|zkus|zkuste|pomoz|pomozte|koukni|mrkni|hoď|dodělej|poslat|zašlete|
        + předložte|odevzdejte|vraťte|vyřízení|nahlášení|zaslání|doplnění|sdělení)
    """,
    "hr": r"""
        nedostaj[eu]|fal[ei]|manjka\w*
        (?:još|dosad|do sada|zasad|i dalje|uvijek|već) (?:\w+ ){0,3}(?:nije|nisu|nismo|nisam|niste|nema|nemamo)
        (?:nismo|nisam) (?:\w+ ){0,2}(?:dobil\w|primil\w|čul\w|vidje\w+|siguran|sigurna|sigurni)
        (?:volio|voljela|voljeli|rado|htio|htjela|htjeli|želio|željela|željeli) (?:bih|bismo)
        (?:bilo|bio|bila|bili) bi(?:h|smo)? (?:\w+ ){0,3}(?:dobro|lijepo|super|zahvaln\w+|sjajno|korisno|drago)
        bi li|bih li|biste li|hoće li|hoćeš li|stigneš li|stignete li|znaš li|znate li|ideš li|idete li
        (?:pita|pitaju|zanima|želi|žele|čeka|čekaju|traži|traže|moli|mole) (?:\w+ |, ){0,3}(?:znati|kad|kada|je li|
        + hoće|što|
        + kako|na|nas|me|ih|odgovor|za|da|koliko)
        (?:ne znam|ne znamo|nije jasno|nisam siguran|nisam sigurna) (?:\w+ |, ){0,3}(?:je li|kad|kada|tko|kako|koji|
        + da li)
        bez (?:njega|nje|njih|toga) (?:\w+ ){0,3}(?:ne|nije)
        (?:da|neka) (?:bude|budu|bi bilo)
        (?:mora|moraju|treba|trebaju|potrebno|nužno|obvezno) (?:\w+ ){0,6}(?:biti|\w{3,}ti)
        nalaže|pozivate|poziva (?:se|vas)|zahtijeva\w*|obvezuje\w*
        ne radi|ne rade|ne otvara|ne mogu (?:\w+ )?(?:otvoriti|pronaći|pristupiti|nastaviti|spojiti)
        pokvaren\w*|oštećen\w*|neispravn\w*|krivu? rob\w+|kriva|razbijen\w*
        hajde\w*|(?:bi|bih|bismo) (?:\w+ )?(?:htio|htjel\w|želio|željel\w|volio|voljel\w)
        blokira\w*|curi|kaplje|reklamacij\w+|pritužb\w+|žali se|zapel\w+
        (?:želim|želimo|hoću) (?:\w+ ){1,3}
        čekam|čekamo|obraćam se|obraćamo se
        (?!ne|procit|saznaj|otkrij|uziv|posjet|citaj|prati|ispric|prelist)\w{2,}jte
        \w{3,}ite (?:mi|nam|ga|ju|ih|im|joj|mu|to|ovo|nas|me|prosim|što|do|najkasnije)
        ^(?!vid|zel|misl|zn)\w{3,}ite
        ^(?:samo |još |i |pa |anna , |\w+ , )?(?:mi |to )?(?:još )?\w{2,}(?<!l)[ij] (?:me|mi|nam|nas|ga|ju|ih|to|ovo|
        + sve|joj|mu|
        + im|se|mi)
        donesi|pomozi|preuzmi|reci|pitaj|nazovi|riješi|javi|donesite|pomozite|recite|vratite|ubacite
        dojav[aue]|dostav[aue] (?:\w+ )?(?:podataka|dokument\w*|očitovanja)
    """,
}
# What somebody writes to say that something is not as it should be: few people write of what is not, if nobody
# shall care.
DENYING = {
    "en": r"not|never|nothing|none|nobody|no longer|cannot|unable|\w+n't",
    "de": r"nicht|nichts|nie|niemand|keine?[nmrs]?",
    "cs": r"""
        ni(?:c|kdo|kdy|kde)|žádn\w+|není|nejsou
        ne(?!bo|boť|jen|ž|js|mus|přejete|má zač|chá|dě|jlep|jdř|jpoz|jbli|jvět)\w{4,}
    """,
    "hr": r"ne|nije|nisu|nema|nemamo|nismo|nisam|ništa|nitko|nikad",
}
# The writer says that it is settled, or that he only tells it.
SETTLED = compile_phrases(
    r"""
    fixed|resolved|sorted|solved|works again|working (?:now|again|fine)|fyi|for your information|just letting you know
    (?:works?|working|runs?|running|up|back|online) again|good to go|back (?:up|online|to normal)
    (?:geht|gehen|läuft|laufen|funktioniert|funktionieren|klappt) (?:jetzt |nun )?wieder|wieder (?:da|normal|in ordnung)
    (?:už|již|zase) (?:to )?(?:zase |opět )?(?:jede|jedou|jde|běží|funguj\w+)|(?:radi|rade) (?:opet|ponovno)|(?:opet|
    + ponovno) (?:radi|rade)
    behoben|erledigt|gelöst|repariert|zur info|zur kenntnis|zur information|funktioniert wieder|läuft wieder
    opraven[aoyéá]?|vyřešen[aoyéá]?|vyřízen[aoyéá]?|pro informaci|na vědomí|už (?:to )?(?:funguje|jde)
    no (?:problem|worries|rush|hurry|charge|cost|doubt|change|changes|longer available)|not (?:only|just)|
    + nothing (?:special|new|else)
    (?:can't|cannot|won't|not) (?:\w+ )?(?:make it|come|attend|join|be (?:there|in|available|changed))|not changed
    no (?:errors?|incidents?|issues?|damage|faults?)|nothing (?:broken|missing|damaged|wrong)
    schaff\w* es|nicht (?:kommen|dabei|teilnehmen)|nichts (?:beschädigt|auffällig\w*)|keine (?:fehler|schäden|mängel|
    + beanstandung\w*)
    nestihnu|nedorazím|nepřijdu|nezúčastním|nic nechybí|žádné (?:chyby|závady|škody)
    ne stižem|ne dolazim|neću (?:moći )?(?:doći|stići)|bez (?:grešaka|oštećenja)
    why not|kein problem|keine (?:sorge|eile|ursache|änderung\w*)|nicht nur|ohne (?:weiteres|gewähr|probleme)
    není zač|bez problémů|nejen|žádný problém|nema (?:na čemu|problema)|bez problema|ne samo|nema žurbe
    popravljen\w*|riješen\w*|na znanje|za informaciju|opet radi|sad radi
    """
)
# Somewhere in the text it says that nothing is to be done: what sounds like a request is none, unless it is put
# plainly.
CALMING = compile_phrases(
    r"""
    (?:ist|sind|wurde|wurden) (?:hiermit )?bestätigt|(?:je|jsou|byla|bylo) potvrzen\w*|(?:je|su) potvrđen\w*
    no (?:further )?action (?:is |on your part )?(?:is )?(?:required|needed|necessary)|nothing (?:\w+ ){0,4}to do|
    + no need
    you (?:do not|don't) (?:need|have) to (?:do|take|worry|reply|respond)|nothing to worry
    kein handlungsbedarf|nichts (?:\w+ )?(?:tun|unternehmen|veranlassen|zu tun)|(?:brauchen|
    + müssen) (?:\w+ ){0,3}nicht(?:s)? (?:zu )?(?:tun|
    + reagieren|unternehmen|antworten)
    (?:is|are|been) (?:hereby )?confirmed|we (?:hereby )?confirm|apologi[sz]e for|(?:incident|issue|
    + problem) (?:\w+ ){0,3}resolved
    (?:wir|hiermit) bestätigen|bestätigen wir|entschuldigen uns|behoben|unverändert
    potvrzujeme|omlouváme se|odstraněn[aoyéá]?|vyřešen[aoyéá]?|beze změny
    potvrđujemo|ispričavamo se|otklonjen\w*|riješen\w*
    nemus(?:íte|íš) (?:\w+ ){0,3}(?:nic|dělat|reagovat)|není (?:třeba|nutné|potřeba) (?:\w+ ){0,3}(?:nic|reagovat|
    + dělat)|už to nech
    ne (?:morate|moraš|trebate|trebaš|treba) (?:\w+ ){0,3}(?:ništa|poduzimati|raditi)|
    + nije potrebno (?:\w+ ){0,3}(?:ništa|poduzimati|javljati)
    """
)
# The writer only tells something: that something is not so is then no complaint.
TELLING = compile_phrases(
    r"""
    fyi|for your information|(?:just|only) (?:letting you know|to let you know|so you know|for info\w*)|nothing urgent
    (?:nur |kurz |kurze )?zur (?:info|information|kenntnis|kenntnisnahme)|nur damit (?:du|sie|ihr)|nichts dringendes
    (?:jen |pouze )?pro (?:info|informaci)|na vědomí|jen aby(?:s|ste)? věděl\w*|nic (?:urgentního|naléhavého)
    (?:samo |čisto )?za (?:info|informaciju)|na znanje|(?:samo|čisto) da zna(?:š|te)|ništa hitno
    """
)
find_hints, find_denials = compile_by_language(HINTING), compile_by_language(DENYING)


def is_hinting(low: str, language: str) -> bool:
    """Whether the words of a folded sentence ask indirectly: I haven't heard back from you."""
    return find_hints(language).search(low) is not None and not SETTLED.search(low)


def is_complaining(low: str, language: str) -> bool:
    """Whether the words of a folded sentence say that something is not so: The sum does not fit."""
    return find_denials(language).search(low) is not None and not SETTLED.search(low)
