"""Words of four languages by what they mean: what is learnt from a text of one language holds for the others, too.

A concept is a list of beginnings of folded words; `=` before a word means the whole word alone. A line that begins with
`+ ` goes on with the line before.
"""

from functools import lru_cache

CONCEPTS = """
    please: =please =pls =plz kindly bitte =prosim =prosime poprosi =molim =molimo zamol
    you: =you =u =dir =dich =du =ihnen =euch =ihr =vam =vas =vami =ti =te =tebe =tobe =tebi =vama =tebou
    your: =your =yours =dein deine =euer eure =ihre =ihren =ihrem =ihrer =ihres vas =tvuj tvoj =tve =tvou
    + =tvym vasem
    we: =we =us =our =i =me =my =wir =uns unser =ich =mir =mich =mein meine =nas nase nasi =mi =nam =nama
    + =mne =muj =mojeg =meni =ja
    want: =want =wants =like =love wish would =d moch wunsch =gern =gerne hatt wurd =chci =chceme =chce
    + chtel =rad =rada =radi =zelim =zelimo =zeli hti htje =volio =rado bychom bych bismo bih
    need: need requir =lack =miss missing brauch benotig fehl potreb chyb =schazi treba treb nedosta =fali
    + =fale nuzno nutn demand verlang trazi pozad zahtij
    wait: wait await pending expect =hold ceka oceka ocek wart erwart =offen
    can: =can =could =able konn kann =konnt =muz muze muzete muzes mohl moze mozes mozete mogl mogao
    must: =must =should =shall =has =have muss =soll solle =mus musi =mate =ma mor moraju =duzn povinn
    if: =if =whether =ob =wenn =falls =pokud =jestli =zda =ako =ukoliko =li
    when: =when =wann =kdy =kad =kada
    who: =who =wer =wem =wen =kdo =komu =tko =kome
    what: =what =which =was =welche =welches =welcher =welchen =co =ktery =ktera =ktere =sto =koji =koja
    + =koje =koju =kolik =koliko =how =wie =jak =kako =where =wo =kam =kde =kamo =gdje =why =warum =proc
    + =zasto
    not: =not =no =never =nothing =nobody =none =without =cannot =nicht =nichts =kein =keine =keinen =keiner
    + =nie =niemand =ohne =neni =nejsou =nic =nikdo =nikdy =bez =zadn =nije =nisu =nema =nitko =nista =nikad
    + =ne =nisam =nismo
    still: =still =yet =noch =immer =jeste =stale =porad =dosud =zatim =jos =dalje =again =wieder =zase
    + =opet =zas
    broken: broken broke =down =dead damag faulty defect fail error wrong crash stuck leak block kaputt
    + defekt beschad falsch fehler ausfall undicht gestort rozbit poskoz vadn chyb spatn nefung nejde nejede
    + netece pokvar ostec kriv gresk neisprav smeta wet nass mokr mokar
    complain: complain complaint unaccept beschwer reklam mangel stizn stezuj prituzb zal unzufrieden
    + nespokoj nezadovolj
    question: question quest =ask =asks =asked wonder frag anfrag otaz =ptam =pta dotaz pita upit zanim
    + =zajim interess curious poptav inquir enquir
    answer: answer reply respon feedback antwort ruckmeld odpov odgov vyjadr ocitov bescheid
    send: =send sending forward submit provid =schick schick =senden =sende zusend ubermitt =poslete =posli
    + zasle zaslat posalji posaljite dostavi dostavite poslat poslati
    sent: =sent shipped dispatched versandt verschickt gesendet unterwegs odesl odesla poslan poslali
    + =poslano otpremlj napust verlass opustil
    sign: sign signatur unterschr unterzeich podpis podepis potpis
    approve: approv releas authori freigab genehm freigeb schval odsouhlas odobr
    check: check review look verify examin pruf uberpruf durchsicht kontrol zkontrol proverit prover mrkn
    + koukn podivej provjer pregled pogled
    confirm: confirm bestat potvr
    decide: decid decision choose prefer entscheid wahl rozhod vyber odluc odluk
    call: =call =calls =ring phone =ruf anruf ruck telef zavol ozv nazov javi javite zva
    tell: =tell inform =know notify mitteil sagen wissen =ved vedet sdel znat javit obavij
    meet: meet meeting appointment schedul slot termin treffen besprech schuz setk porad sasta sastanak
    order: order purchas bestell auftrag objedn naruc narudz
    price: price quot offer estimat preis angebot kostenvor nabid cen nabidk ponud cijen
    deliver: deliver arriv shipment parcel liefer zustell paket sendung doruc dodan dodav zasilk balik
    + isporu dostav posiljk
    arrived: arrived received delivered eingetroffen angekommen eingegangen erhalten geliefert dorazil
    + dorazilo prisl prijat prijal doruceno stigl stiglo zaprim primlj prispj
    done: done finished completed complete fixed solved resolved closed sorted ready installed replaced
    + uploaded erledigt fertig behoben gelost repariert geschlossen abgeschl durchgef beendet getauscht
    + hotov hotovo vyres vyriz oprav dokonc uzavr vymen nahral gotov rijes zavrs zatvor popravlj obavlj
    + zamijenj ucitao
    ok: =ok =okay =fine =agreed =perfect =great alright =passt einverstanden =gut =super ordnung =klar
    + poradk souhlas =fajn =jasne redu slaz odlicn =vrijedi dogovor
    thanks: thank =thx =cheers =danke =dank dekuj diky =dik hvala zahvalj
    greet: congrat welcome merry happy gluckw gratul willkomm froh vanoc gratulu vitam vanoce stast cestit
    + dobrod sretan blagdan
    sorry: sorry apolog entschuld leider omlouv bohuzel promin ispric oprost nazalost zao
    info: =fyi info information note notice kenntnis hinweis =vedomi oznam informac znanje obavijest
    + obavjest
    paid: =paid charged refunded refund credited debited receipt bezahlt uberwiesen abgebucht eingezogen
    + gutschr erstatt quittung lastschr abbuch zaplacen uhrazen strz inkas vrac dobropis uctenk placen
    + uplacen naplac terec povrat odobrenj
    pay: =pay payable payment remit settle transfer =owe =owed zahl uberweis begleich einzahl schuld zaplat
    + uhra uhrad platb dluz plat uplat placanj podmir duguj
    due: =due overdue outstanding arrears unpaid balance fallig offen ruckstand mahn splatn nedopl dluh
    + dluzn upomin dospij dug dospje nepodmir opomen
    bill: invoice =bill =bills fee fees rent premium fine penalty tax dues deposit instal rechnung gebuhr
    + miete pramie steuer beitrag anzahl faktur poplat najem pojistn dan dane pokut zaloh prispev splatk
    + racun naknad najam premij porez kazn clanarin predujam rata kapar
    account: account iban konto kontonr ucet uctu racun ziro =vs variabiln
    attach: attach enclos anbei beilieg anhang anlage priloz priloh prilohe priklad privit prilog prilaz
    urgent: urgent asap immediat soon dringend sofort eil umgehend nalehav spech ihned okamzit hitn odmah
    + =prije
    deadline: =by =until =before deadline latest =bis spatest frist =do nejpozd lhut najkas rok roku termin
    today: =today tonight morning =heute vormittag =dnes =dneska dopoledne =danas jutro
    tomorrow: =tomorrow =morgen =zitra =sutra
    last: =yesterday =last =gestern =letzte =letzten =vcera minul =jucer prosl
    past: =was =were =been =has =had =wurde =wurden =hat =haben =habe =bin =byl =byla =bylo =byli =jsem
    + =jsme =bio =bila =bilo =sam =smo =su =je
    future: =will =ll =werden =wird =werde =bude =budou =budu =budeme =ce =cemo =cu
    change: chang updat aktual zmen promjen azurir
    sale: sale discount shop bargain voucher rabatt aktion sonderpr gunstig sleva slev vyprod popust rasprod
    + akcij
    news: news newsletter article edition read lesen ausgabe zprav clanek vydani vijest clan novost
    away: vacation holiday leave sick office urlaub krank ferien abwesen dovolen nemoc volno godisnj bolest
    + bolov odsut
    report: report result statement recap summary bericht ergebnis protokoll befund zprava vysled zapis
    + hlasen izvjes rezultat nalaz zapisnik
    system: backup build deploy version server alert alarm sicherung verzija verze zaloha nasazen
    access: password login account access locked passwort zugang gesperrt heslo pristup prihlas lozink
    + zaporka prijav
    contract: contract agreement draft vertrag entwurf smlouv navrh ugovor nacrt
    document: document certificate form papers copy dokument unterlagen formular zertifikat doklad podklad
    + papir obraz potvrd
    help: help support assist hilfe helf pomoc pomoz pomozi
    bring: bring return register fill enter renew update complete mitbring eintrag einreich nachreich zuruck
    + prines vrat vypln zadej prihlas donesi ispun popun unesi
    cancel: cancel kundig storn zrus vypov otkaz odustaj
    someone: =someone =somebody =anyone =anybody =everyone =everybody =jemand =jeder =alle =irgendwer =nekdo
    + =kazdy =vsichni =netko =svatko =svi =neko
    visit: visit guest besuch gast navstev host posjet gost
"""
LONGEST, SHORTEST = 10, 3  # letters of a beginning


def _make_tables() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Whole words and beginnings, each with its concepts."""
    wholes: dict[str, tuple[str, ...]] = {}
    beginnings: dict[str, tuple[str, ...]] = {}
    for line in CONCEPTS.replace("\n    + ", " ").strip().splitlines():
        name, _, listed = line.strip().partition(": ")
        for written in listed.split():
            table, word = (wholes, written[1:]) if written.startswith("=") else (beginnings, written)
            table[word] = (*table.get(word, ()), name)
    return wholes, beginnings


WHOLES, BEGINNINGS = _make_tables()


@lru_cache(maxsize=50_000)
def find_concepts(word: str) -> tuple[str, ...]:
    """What a folded word means; nothing for most of them. The longest beginning says it."""
    found = WHOLES.get(word, ())
    for length in range(min(len(word), LONGEST), SHORTEST - 1, -1):
        if word[:length] in BEGINNINGS:
            return tuple(dict.fromkeys((*found, *BEGINNINGS[word[:length]])))
    return found
