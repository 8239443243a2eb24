"""Words of four languages by what they mean, so that a sentence can be compared with a passage in another language."""

from collections.abc import Iterator
from functools import lru_cache

from gristmill.agents.ask.words import WORD
from gristmill.knowledge import fold

# Each line is a meaning and its words in these languages; a star stands for any ending. All words are folded: without
# case and accents. A line that begins with “+” goes on with the line before it.
SPOKEN = ("en", "de", "cs", "hr")
# What somebody does, or what happens: a passage that only says something else of the same names supports nothing.
DEEDS = """
    found: found founded founder founding establish* | grunden grundet* grundung gegrundet* | zaloz* zaklada* |
    + osnova* osniva* utemelj*
    sell: sell sells sold selling sale | verkauf* verausser* | prodal* proda* prodej* | proda*
    buy: buy buys bought buying purchas* acquir* | kauf* gekauft* erwarb erwirbt erworben* | koupi* kupuj* nakoup* |
    + kupi* kupuj*
    pay: pay pays paid paying payment* payable | zahl* bezahl* gezahlt* uberweis* uberwies* | plati* zaplati*
    + zaplacen* uhradi* uhrad* hradi* | plac* plati* plate*
    receive: receiv* get gets got collect* | erhalt* erhielt* bekomm* bekam* empfang* empfing* | obdrz* dosta* inkas*
    + | prima* primi* dobi* dobiva*
    begin: begin* began begun start* commenc* | beginn* begann* begonnen anfang* startet* | zacina* zacal* zacne
    + zahaj* | poci* zapoc* pocet*
    end: end ends ended ending expir* | endet* endend* endete* ablauf* lauft | konci* skonci* ukonc* vyprs* | zavrs*
    + istje* istice* isteka*
    terminate: terminat* cancel* | kundig* gekundigt* storn* | vypove* vypovi* zrusi* zrusen* | otkaz* raski*
    arrest: arrest* detain* jailed imprison* | verhaft* festgenommen inhaftiert* | zatce* zatkl* uvezn* | uhiti*
    + uhicen* uhapsi* zatvoren*
    convict: convict* sentenced | verurteil* | odsoud* odsouzen* | osudi* osuden*
    die: die dies died dead death | starb* stirbt gestorben* verstarb* tod | zemrel* umr* umrel* | umr* preminu*
    born: born birth | geboren* geburt | narodi* narozen* | roden* rodi*
    deliver: deliver* supply supplies supplied | liefer* geliefert* | doda* doruc* | isporu* dostav*
    send: send sends sent sending ship shipped dispatch* | schick* geschickt* send* gesendet* gesandt* versand*
    + versend* | posla* posil* odesl* zasla* | posla* salje* slati
    install: install* mount* hang hangs hung fitted | montier* installier* eingebaut* einbau* aufgehangt* | namontov*
    + instal* zaves* | montir* instal* ugradi*
    provide: provid* keep keeps kept available | bereitstell* bereitgestellt* stellt bereit | poskyt* zajist* | osigura*
    + pruzi* pruza*
    sign: sign signs signed signing signature* conclud* | unterschr* unterzeichn* abgeschlossen* | podeps* podepis*
    + | potpis*
    repair: repair* mend mended fix fixed fixes restor* | reparier* repariert* instand* ausgebesser* | oprav* |
    + popravi* popravlj*
    replace: replac* exchang* swap* | ersetz* ausgetauscht* austausch* ausgewechselt* | vymen* nahra* | zamijen*
    + zamjen*
    clean: clean* wash* | reinig* gereinigt* putz* geputzt* | cisti* vycist* uklid* | cisti* ocisti*
    build: build builds built construct* erect* | bau baut* gebaut* erbau* erricht* | postav* stavi* | gradi* izgrad*
    + sagrad*
    destroy: destroy* demolish* | zerstor* abgerissen* | znici* zbour* | unisti* srusi*
    rise: rise rises rose risen rising increas* raise raised raises grew grow grows grown | steig* stieg* gestiegen*
    + erhoh* wuchs* wachst gewachsen* | zvys* vzrost* rost* stoup* | poveca* poras* raste*
    fall: fall falls fell fallen reduc* decreas* lower* cut declin* drop dropped | sinkt sank* gesunken* senk*
    + gesenkt* reduzier* kurzt* gekurzt* kurzung* verringer* | snizi* snize* kles* zkrat* | smanj* pada* pao pala
    + snizi*
    hire: hire hires hired hiring recruit* employ employs | einstell* eingestellt* stellt beschaftigt* | prija*
    + najim* zamestna* |
    + zaposli* zaposlj*
    dismiss: dismiss* fired layoff* | entlass* entliess* | propou* propust* | otpust* otpus*
    resign: resign* | zurucktr* zuruckgetreten* trat | odstoup* rezign* | podnio ostavku
    join: join joins joined | beigetreten* beitrat eingetreten* eintrat | nastoupi* pripoji* vstoupi*
    + | pridruzi* pristupi*
    leave: leave leaves left depart* quit | verliess* verlass* ausgeschieden* | odesel odesla odejit odchaz* opusti*
    + | napusti* otis*
    owe: owe owes owed debt* | schuldet* schulden | dluzi* | duguj*
    burn: burn* burnt | brannt* abgebrannt* verbrann* | shor* vyhor* | izgor*
    sue: sue sues sued lawsuit* | klagt* verklag* | zaloval* zazalov* | tuzi*
    promote: promot* | befordert* beforder* | povys* | promaknu* unaprij*
    approve: approv* accept* authoris* authoriz* | genehmig* gebilligt* bewillig* angenommen* akzeptier* | schval*
    + prija* souhlas* | odobri* odobren* prihva*
    reject: reject* refus* declined decline | ablehn* abgelehnt* lehnte zuruckgewiesen* | zamit* odmit* | odbi* odbij*
    allow: allow* permit* | erlaub* gestatt* zulass* | povol* dovol* | dopus* dozvol*
    forbid: forbid* forbad* forbidden prohibit* ban banned | verboten* verbiet* untersag* | zakaz* | zabran*
    open: open opens opened opening | offn* geoffnet* eroffn* offen | otevr* otevir* | otvor* otvar*
    close: close closes closed closing shut | schliess* schloss geschlossen* | zavr* zavir* | zatvor* zatvoren* zatvar*
    win: win wins won | gewann* gewinnt gewonnen* | vyhra* zvitez* | pobijedi* osvoji*
    lose: lose loses lost | verlor* verliert* | prohra* ztrati* | izgubi*
    lead: lead leads led leading manage manages managed head heads headed | leitet* geleitet* fuhrt* gefuhrt* | vede
    + vedl* ridi* | vodi* upravlja*
    work: work works worked working | arbeit* gearbeitet* | pracuj* pracova* | radi* radila radio
    live: live lives lived living reside* | wohn* gewohnt* lebt* | bydl* zije zil* | zivi* stanuj*
    move: move moves moved moving relocat* | zog zieht gezogen* umzieh* umgezogen* verlegt* | presteh* prestehov* |
    + preseli* seli*
    meet: meet meets met | traf trafen trifft getroffen* | setka* potka* sesl* | sreo srela susre* sasta*
    write: write writes wrote written author | schrieb* schreib* geschrieben* verfasst* | napsa* psal* pise | napisa*
    + pise pisao pisala
    return: return returned returns | zuruckgesandt* zuruckgeschickt* zuruckgegeben* | vrati* vracen* | vrati*
    + vracen*
    visit: visit* | besuch* | navstiv* | posjeti* posjecu*
    marry: marry married marries | heiratet* geheiratet* | ozeni* vdala provdal* | ozeni* udala vjenca*
    own: own owns owned possess* | besitzt besass gehort* | vlastni* patri* | posjedu* pripada*
    rent: rents rented lease leases leased let | mietet* gemietet* vermietet* verpachtet* | pronaj* najal* | iznajm*
    + unajm*
    cost: cost costs | kostet* | stoji stal* | kosta* stajao
    fail: fail fails failed failure broke broken break breaks | versagt* ausfall* ausgefallen* brach gebrochen* kaputt
    + | selha* porouch* praskl* rozbi* | zakaza* pokvari* puknu*
    order: ordered orders | bestellt* | objedna* | naruci* narucen*
    confirm: confirm* | bestatig* | potvrdi* potvrzen* | potvrdi* potvrden*
    postpone: postpon* delay* | verschob* verschieb* vertag* | odloz* odlozen* | odgod* odgad*
    lend: lend lends lent | verleih* verlieh* | pujci* | posudi* pozajmi*
    steal: steal stole stolen stealing | stahl gestohlen* stiehlt | ukrad* | ukra*
    check: check* inspect* review* examin* verif* | pruf* gepruft* uberpruf* kontrollier* | kontrolu* zkontrol*
    + prover* | provjer* pregled*
    cover: cover* | deckt* gedeckt* abgedeckt* | kryje pokryv* vztahuj* | pokriva* obuhva*
    support: support supports supported | unterstutz* | podpor* | podrza* podrzava*
"""
# What is spoken of, and verbs that say little of it: other words say the same.
THINGS = """
    total: amounts amounted comes totals equals | betragt betrug* belauft* belief | cini cinil* | iznosi* iznosil*
    apply: valid applies apply applied runs run term | gilt gelten gultig* lauft laufzeit | plati platn* uzavren*
    + | vrijedi* sklopljen*
    happen: scheduled planned happens | statt geplant* angesetzt* | kona konal* planovan* | odrzava* planiran*
    last: last lasts lasted runs run term | dauert* gedauert* lauft | trva* | traj*
    inform: inform* notif* tell tells told advise* | informier* benachrichtig* mitteil* mitgeteilt*
    + | informova* oznam* sdel*
    + | obavijest* obavjest* javi*
    propose: propos* suggest* recommend* | vorschlag* vorgeschlagen* empfiehlt empfohlen* empfehl* | navrh* doporuc*
    + | predloz* predlaz* preporuc*
    need: need needs needed requir* necessary | braucht brauchen benotig* erforder* | potreb* vyzad*
    + | treba potreb* zahtij*
    explain: explain* describ* | erklar* erlauter* beschreib* | vysvetl* popis* | objasn* opis*
    ask: ask asks asked request* demand* | bittet bat gebeten* verlang* forder* | zada pozada* poprosi*
    + | moli zamoli* trazi*
    complete: complet* finish* | fertig* abgeschlossen* vollende* | dokonc* hotov* | dovrs* zavrs* gotov*
    prepare: prepar* draft* | vorbereit* entwarf entworfen* entwirft | priprav* | priprem*
    show: show shows showed shown indicat* display* | zeigt* gezeigt* anzeig* angezeigt* | ukaz* zobraz*
    + | pokaz* prikaz*
    use: use uses used using utilis* utiliz* | verwend* benutz* nutzt* genutzt* | pouzi* uziva* | koristi* upotreb*
    store: stor* keep keeps kept | lagert* gelagert* aufbewahr* | sklad* uchova* | cuva* skladist*
    stop: stop stops stopped halt* switch | stoppt* gestoppt* anhalt* angehalten* | zastav* | zaustav*
    improve: improv* enhanc* better | verbesser* | zleps* | poboljs*
    refund: refund* reimburs* repaid repay* | erstatte* ruckerstatt* | refund* vrat* | refund* vrat*
    hurt: injur* hurt wounded | verletz* | zran* | ozlij* ranj*
    contract: contract* agreement* | vertrag* vereinbarung* | smlouv* dohod* | ugovor* sporazum*
    offer: offer* quot* | angebot* | nabid* | ponud*
    tax: tax taxes vat | steuer* mehrwertsteuer* | dan dane dph | porez* pdv
    invoice: invoice* bill bills | rechnung* | faktur* uct* | racun* faktur*
    amount: amount* sum sums | betrag* summe* | castk* suma sumu | iznos* svot*
    price: price* | preis* | cena ceny cene cenu cen cenou cenik* | cijen*
    fee: fee fees charge charges | gebuhr* | poplat* | naknad* pristojb*
    rental: rent rents | miete mieten mietzins* | najem* najemne* | najamnin*
    notice: notice* | kundigungsfrist* frist* | vypovedn* lhut* | otkazn* rok
    money: money budget | geld* budget* | penize penez rozpocet* rozpoct* | novac novca proracun*
    company: company companies firm firms business | firma firmen unternehmen* gesellschaft* betrieb* | firm*
    + spolecnost* podnik* | tvrtk* poduzec* firm* drustv*
    mill: mill mills | muhle* | mlyn* | mlin*
    house: house* | haus hauser hause | dum domu | kuc*
    roof: roof* | dach* | strech* | krov*
    damage: damage* | schad* | skod* | stet*
    goods: goods ware* | ware waren | zboz* | rob*
    warehouse: warehouse* | lager* | sklad* | skladist*
    meeting: meeting* | besprech* sitzung* treffen | schuz* porad* | sastan* sjednic*
    month: month* | monat* | mesic* | mjesec*
    year: year* annual* | jahr* | rok* roce rocn* let | godin* godisn*
    week: week* | woche* | tyden* tydn* | tjed*
    day: day days | tag tage tagen tags | den dny dnu dni | dan dana
    people: people person persons | mensch* leute person* | lid* osob* | ljud* osob*
    warranty: warrant* guarantee* | garantie* gewahrleistung* | zaruk* zarucn* | jamstv* garancij*
    vacation: vacation* holiday* leave | urlaub* ferien | dovolen* | odmor*
    trial: trial* test tests | probe* test* versuch* | zkous* test* | proba probni test*
    town: town* city cities | stadt stadte | mest* | grad gradu grada
"""
# Who does it in a contract: exchanged, the same words bind somebody else.
ROLES = """
    tenant: tenant* lessee* | mieter* pachter* | najemc* | najmoprim* stanar* zakupni*
    landlord: landlord* lessor* | vermieter* verpachter* | pronajim* | najmodav* stanodav* zakupodav*
    buyer: buyer* purchaser* | kaufer* erwerber* | kupujic* kupec kupce | kup* kupac
    seller: seller* vendor* | verkaufer* | prodavaj* prodejc* | prodavatelj*
    customer: customer* client* | kunde kunden kundin* auftraggeber* | zakazn* klient* odberat* | kupac klijent*
    + narucitelj*
    supplier: supplier* provider* contractor* | lieferant* auftragnehmer* | dodavatel* | dobavljac* izvodac*
    employer: employer* | arbeitgeber* | zamestnavat* | poslodav*
    employee: employee* worker* staff | arbeitnehmer* mitarbeiter* angestellt* beschaftigt* | zamestnan* | zaposleni*
    + radnik* radnic*
    licensor: licensor* | lizenzgeber* | poskytovatel* | davatelj*
    licensee: licensee* | lizenznehmer* | nabyvatel* | stjecatel*
    insurer: insurer* | versicherer* | pojistovn* | osiguravatelj*
    insured: insured policyholder* | versicherte* versicherungsnehmer* | pojisten* | osiguranik*
    lender: lender* creditor* | glaubiger* darlehensgeber* | verit* | zajmodav* vjerovni*
    borrower: borrower* debtor* | schuldner* darlehensnehmer* | dluzni* | zajmoprim* duzni*
    owner: owner* proprietor* | eigentumer* besitzer* inhaber* | vlastni* majitel* | vlasni*
    manager: manager* head director* | leiter* geschaftsfuhrer* direktor* | vedouc* reditel* | voditelj* direktor*
    + ravnatelj*
"""
OPPOSITE = """
    buy sell | pay receive | begin end | hire dismiss | rise fall | approve reject | allow forbid | open close
    | win lose | born die | send receive | build destroy | sign terminate
    | join leave
"""
APART = frozenset(pair for one in OPPOSITE.split("|") for a, b in [one.split()] for pair in ((a, b), (b, a)))

Table = dict[str, dict[str, frozenset[str]]]  # for each language the meanings of its words


def _read_table(text: str) -> tuple[Table, Table]:
    """The whole words and the beginnings of each language, each with its meanings."""
    wholes: Table = {one: {} for one in SPOKEN}
    beginnings: Table = {one: {} for one in SPOKEN}
    for name, listed in _read_lines(text):
        for language, written in zip(SPOKEN, listed.split("|"), strict=True):
            for word in written.split():
                table = (beginnings if word.endswith("*") else wholes)[language]
                key = word.rstrip("*")
                table[key] = table.get(key, NONE) | {name}
    return wholes, beginnings


def _read_lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.replace("\n    + ", " ").strip().splitlines():
        name, _, listed = line.strip().partition(": ")
        yield name, listed


NONE = frozenset[str]()
DEED, ROLE = (frozenset(name for name, _ in _read_lines(text)) for text in (DEEDS, ROLES))
WHOLES, BEGINNINGS = _read_table("\n".join(text.strip() for text in (DEEDS, THINGS, ROLES)))
NEGATED = ("cs",)  # there “ne” before a verb denies it: nepodepsal


@lru_cache(maxsize=20_000)
def find_meanings(word: str, language: str | None) -> frozenset[str]:
    """What a word may mean; nothing for most words. A whole word says more than a beginning, a long one more."""
    plain = fold(word)
    if language not in WHOLES:
        return NONE
    if found := WHOLES[language].get(plain):
        return found | BEGINNINGS[language].get(plain, NONE)
    for length in range(len(plain), 2, -1):
        if found := BEGINNINGS[language].get(plain[:length]):
            return found
    return find_meanings(plain[2:], language) if language in NEGATED and plain.startswith("ne") else NONE


@lru_cache(maxsize=4_096)
def read_meanings(text: str, language: str | None) -> tuple[tuple[str, frozenset[str]], ...]:
    """The words of a text that mean something here, with their meanings."""
    words = (match[0] for match in WORD.finditer(text))
    return tuple((word, found) for word in words if (found := find_meanings(word, language)))
