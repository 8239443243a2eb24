"""Words that questions and texts use for one thing: asked is who bought it, and the text says who took it over."""

from functools import lru_cache

from gristmill.agents.ask.words import stem
from gristmill.knowledge import fold

LANGUAGE = "en"  # of the families: other languages have none yet
# What is often asked of people, places, firms and works, a family a line. A word may belong to several.
FAMILIES = """
    born birth birthplace birthday native
    die died death dead deceased killed perished
    kill killed murder murdered shot assassinated
    buried grave cemetery tomb
    founded founder establish established start started begin began create created creator opened formed launched
    begin began start started open opened launch launched
    end ended finish finished close closed cease ceased stop stopped dissolved disbanded
    buy bought acquire acquired purchase purchased take took over
    sell sold sale sales
    own owned owner owns belong belongs
    work worked employ employs employed employer employee employees job staff career served occupation profession
    earn earned salary wage wages paid income
    inhabitant inhabitants population people live lives resident residents
    live lived home house dwell settled resided residence
    direct directed director filmmaker
    write wrote written writer author novelist songwriter penned
    publish published publisher publication appeared issued released
    compose composed composer music musical score
    sing sang singer song vocals vocalist
    paint painted painter painting picture portrait
    photograph photographed photographer photo picture
    draw drew drawn drawing sketch
    design designed designer plan plans drew architect architecture
    build built builder construct constructed construction erected
    make made maker produce produced producer production manufacture manufactured manufacturer
    invent invented inventor invention devised developed
    discover discovered discoverer discovery found
    marry married marriage wife husband spouse wed
    child children son sons daughter daughters offspring
    father mother parent parents
    brother brothers sister sisters sibling siblings
    cost costs price prices paid pay pays payment fee euros eur dollars expensive
    teach taught teacher pupil pupils lecturer professor lecture supervise supervised supervisor
    learn learned learnt taught
    study studied student educated trained graduate graduated degree attend attended
    school university college academy
    monastery abbey convent priory
    church cathedral chapel parish
    castle palace fortress
    river stream tributary
    source rises spring
    flow flows mouth
    island isle islet
    hill mountain
    top summit peak
    climb climbed climber ascent ascended
    high height tall elevation altitude
    deep depth deepest
    long length
    wide width broad
    weigh weight heavy kilograms grams tonnes
    big large size area
    fast speed
    guarantee warranty
    insurance insure insures insured insurer policy
    illness disease ill sick sickness
    colour color
    give given award awarded prize handed presented received
    win won winner victory champion awarded receive received
    lose lost loss
    reject rejected refuse refused decline declined oppose opposed against
    accept accepted agree agreed approve approved
    choose chose chosen choice decide decided decision agreed select selected picked
    meet met meeting
    attend attended present participants took
    phone telephone call called
    sink sunk sank lowered
    flood flooded drowned submerged underwater water
    play played player actor actress role starred stars performed
    move moved moving relocated emigrated
    travel travelled traveled journey trip went
    arrive arrived arrival reach reached came
    leave left departed departure
    join joined member members
    head lead led leader chair chairman chaired director boss
    govern governed governor ruled ruler king queen reign
    call called name named titled title
    change changed alter altered convert converted turned became
    replace replaced substitute instead successor succeeded
    repair repaired mend mended restore restored renovated restoration
    break broke broken damage damaged crack cracked split
    destroy destroyed demolish demolished burnt burned
    fire burn burned burnt flames
    grow grew growth increase increased rise rose raised
    fall fell drop dropped decrease decreased reduce reduced fewer
    happen happened occur occurred
    help helped assist assisted assistant aid
    protect protected protection guard
    need needed require required requires
    allow allowed permit permitted permission permits
    forbid forbidden ban banned prohibited
    show showed shown display displayed exhibit exhibited
    keep kept stored hold held preserved
    carry carried transport transported
    send sent dispatch mailed
    speak spoke spoken talk talked
    warn warned warning caution cautioned
    fear feared afraid worried worry concern concerned danger dangerous risk
    shake shook shudder shuddered tremble
    problem problems difficulty trouble issue
    reason because cause caused why
    doctor physician surgeon medic
    lawyer lawyers solicitor attorney
    money funds funding finance financed budget cash
    company firm business enterprise
    town city village place settlement
    film movie picture
    book novel volume
    band group ensemble duo quartet
    team squad crew group
    plane aircraft aeroplane airplane
    ship vessel boat
    car vehicle automobile
    road street lane
    letter mail message note wrote
    clause paragraph section article
    contract agreement deal
    invoice bill
    mill mills
    war battle fought
    capital seat headquarters headquartered based
    nickname nicknamed known alias called
    hobby pastime leisure spare
    animal animals dogs horses cattle sheep birds ponies bees goats
    sport football hockey tennis cricket rugby rowing cycling swimming athletics goalkeeper
    instrument piano violin organ organist fiddle fiddler guitar flute cello pianist violinist
"""
# The forms of verbs that stems do not bring together.
IRREGULAR = """
    bear bore borne | break broke broken | breed bred | bring brought | build built | buy bought | choose chose chosen
    | come came | drink drank drunk | draw drew drawn | drive drove driven | eat ate eaten | fall fell fallen | feed fed
    | feel felt | fight fought | fly flew flown | forget forgot forgotten | get got | give gave given | go went gone
    | grow grew grown | hang hung | hear heard | hide hid hidden | hold held | keep kept | know knew known | lay laid
    | lead led | leave left | lend lent | lie lay lain | light lit | lose lost | make made | mean meant | meet met
    | pay paid | ride rode ridden | ring rang rung | rise rose risen | run ran | say said | see saw seen | seek sought
    | sell sold | send sent | shake shook shaken | shoot shot | sing sang sung | sink sank sunk | sit sat | sleep slept
    | speak spoke spoken | spend spent | stand stood | steal stole stolen | strike struck | swim swam swum
    | take took taken | teach taught | tell told | think thought | throw threw thrown | understand understood
    | wake woke | wear wore worn | win won | write wrote written
"""


def _gather_families() -> dict[str, frozenset[str]]:
    """For each word and each stem, the words and stems of all families that have it."""
    found: dict[str, set[str]] = {}
    for line in [*FAMILIES.strip().splitlines(), *IRREGULAR.split("|")]:
        own = {form for word in line.split() for form in (word, stem(word, LANGUAGE))}
        for form in own:
            found.setdefault(form, set()).update(own)
    return {form: frozenset(own) for form, own in found.items()}


RELATED = _gather_families()


@lru_cache(maxsize=4_096)
def find_family(word: str) -> frozenset[str]:
    """The words and stems that may stand for a word; none for most words."""
    plain = fold(word)
    return RELATED.get(plain) or RELATED.get(stem(plain, LANGUAGE)) or frozenset()
