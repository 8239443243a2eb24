"""The few sentences that we say ourselves, in the language of the question, and the ways in which models say them."""

import re

from gristmill.agents.ask.model import KEPT_VERDICTS, Verdict

UNKNOWN = {
    "en": "I don't know: nothing that is stored answers this.",
    "de": "Das weiß ich nicht: Nichts von dem, was gespeichert ist, beantwortet diese Frage.",
    "fr": "Je ne sais pas : rien de ce qui est enregistré ne répond à cette question.",
    "es": "No lo sé: nada de lo que está guardado responde a esta pregunta.",
    "it": "Non lo so: nulla di ciò che è memorizzato risponde a questa domanda.",
    "pt": "Não sei: nada do que está guardado responde a esta pergunta.",
    "nl": "Dat weet ik niet: niets van wat is opgeslagen beantwoordt deze vraag.",
    "pl": "Nie wiem: nic z tego, co jest zapisane, nie odpowiada na to pytanie.",
    "cs": "Nevím: nic z toho, co je uloženo, na tuto otázku neodpovídá.",
    "sk": "Neviem: nič z toho, čo je uložené, na túto otázku neodpovedá.",
    "hr": "Ne znam: ništa od pohranjenog ne odgovara na ovo pitanje.",
    "sl": "Ne vem: nič od shranjenega ne odgovarja na to vprašanje.",
    "sv": "Det vet jag inte: inget av det som är lagrat besvarar frågan.",
    "da": "Det ved jeg ikke: intet af det, der er gemt, besvarer spørgsmålet.",
    "no": "Det vet jeg ikke: ingenting av det som er lagret, svarer på spørsmålet.",
    "fi": "En tiedä: mikään tallennettu ei vastaa tähän kysymykseen.",
    "hu": "Nem tudom: semmi, ami el van tárolva, nem válaszol erre a kérdésre.",
    "ro": "Nu știu: nimic din ce este stocat nu răspunde la această întrebare.",
    "tr": "Bilmiyorum: kayıtlı olan hiçbir şey bu soruyu yanıtlamıyor.",
    "ru": "Не знаю: ничто из сохранённого не отвечает на этот вопрос.",
    "uk": "Не знаю: ніщо зі збереженого не відповідає на це запитання.",
    "bg": "Не знам: нищо от запазеното не отговаря на този въпрос.",
    "el": "Δεν ξέρω: τίποτα από όσα είναι αποθηκευμένα δεν απαντά σε αυτή την ερώτηση.",
    "ar": "لا أعرف: لا شيء مما هو مخزَّن يجيب عن هذا السؤال.",
    "ja": "分かりません。保存されている内容にこの質問の答えはありません。",
    "zh": "我不知道：已保存的内容没有回答这个问题。",
    "ko": "모르겠습니다. 저장된 내용 중 이 질문에 답하는 것이 없습니다.",
}
NO_MODEL = {
    "en": "No model is configured (GRISTMILL_LLM_MODEL): these are the passages that fit best.",
    "de": "Es ist kein Modell eingestellt (GRISTMILL_LLM_MODEL): Dies sind die Stellen, die am besten passen.",
    "fr": "Aucun modèle n'est configuré (GRISTMILL_LLM_MODEL) : voici les passages qui conviennent le mieux.",
    "es": "No hay ningún modelo configurado (GRISTMILL_LLM_MODEL): estos son los pasajes que mejor encajan.",
    "cs": "Není nastaven žádný model (GRISTMILL_LLM_MODEL): toto jsou nejvhodnější místa.",
    "hr": "Nije postavljen nijedan model (GRISTMILL_LLM_MODEL): ovo su odlomci koji najbolje odgovaraju.",
    "it": "Nessun modello è configurato (GRISTMILL_LLM_MODEL): questi sono i passaggi più adatti.",
    "pt": "Nenhum modelo está configurado (GRISTMILL_LLM_MODEL): estas são as passagens mais adequadas.",
    "nl": "Er is geen model ingesteld (GRISTMILL_LLM_MODEL): dit zijn de passages die het best passen.",
    "pl": "Nie ustawiono żadnego modelu (GRISTMILL_LLM_MODEL): oto najlepiej pasujące fragmenty.",
    "sk": "Nie je nastavený žiadny model (GRISTMILL_LLM_MODEL): toto sú najvhodnejšie miesta.",
}
MODEL_FAILED = {
    "en": "The model failed: these are the passages that fit best.",
    "de": "Das Modell hat versagt: Dies sind die Stellen, die am besten passen.",
    "fr": "Le modèle a échoué : voici les passages qui conviennent le mieux.",
    "es": "El modelo ha fallado: estos son los pasajes que mejor encajan.",
    "cs": "Model selhal: toto jsou nejvhodnější místa.",
    "hr": "Model je zakazao: ovo su odlomci koji najbolje odgovaraju.",
    "it": "Il modello non ha risposto: questi sono i passaggi più adatti.",
    "pt": "O modelo falhou: estas são as passagens mais adequadas.",
    "nl": "Het model heeft gefaald: dit zijn de passages die het best passen.",
    "pl": "Model zawiódł: oto najlepiej pasujące fragmenty.",
    "sk": "Model zlyhal: toto sú najvhodnejšie miesta.",
}
LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "pl": "Polish",
    "cs": "Czech",
    "sk": "Slovak",
    "hr": "Croatian",
    "sl": "Slovenian",
    "sv": "Swedish",
    "da": "Danish",
    "fi": "Finnish",
    "hu": "Hungarian",
    "ro": "Romanian",
    "ru": "Russian",
    "uk": "Ukrainian",
    "tr": "Turkish",
    "no": "Norwegian",
    "sr": "Serbian",
    "bg": "Bulgarian",
    "et": "Estonian",
    "lv": "Latvian",
    "lt": "Lithuanian",
    "el": "Greek",
    "ar": "Arabic",
    "fa": "Persian",
    "he": "Hebrew",
    "hi": "Hindi",
    "th": "Thai",
    "vi": "Vietnamese",
    "id": "Indonesian",
    "ja": "Japanese",
    "zh": "Chinese",
    "ko": "Korean",
}
# How models say of themselves that they do not know. Each pattern is a whole statement: “he does not know her” is none.
IGNORANCE = re.compile(
    r"\bI (?:do not|don['’]t|cannot|can['’]t|could not|couldn['’]t) (?:know|find|answer|determine|say|tell)\b"
    r"|\bI(?: a|['’])m (?:not (?:sure|able)|unable|sorry)\b"
    r"|\b(?:ich )?wei(?:ß|ss) (?:ich |es |das )?nicht\b|\b(?:kann|konnte) ich nicht\b"
    r"|\bje ne sais pas\b|\bno (?:lo )?sé\b|\bnon (?:lo )?so\b|\bnevím\b|\bne znam\b",
    re.IGNORECASE,
)
# How they say it of what they were given. The same words may be an answer: breakfast is not included.
LACK = re.compile(
    r"\b(?:evidence|passages?|sources?|texts?|documents?|context|information|excerpts?)(?: \w+){0,3} "
    r"(?:do(?:es)? not|don['’]t|doesn['’]t|did not|didn['’]t|lacks?|contains? no|provides? no|gives? no)"
    r"|\b(?:there is|there['’]s|contains|provides|have|has) no (?:information|mention|evidence|answer|details?)\b"
    r"|\b(?:is|are|was|were) not (?:mentioned|stated|specified|provided|given|answered|included|available|known)\b"
    r"|\bnot (?:enough|sufficient) (?:information|evidence)\b|\bno (?:relevant )?information\b"
    r"|\bgeht (?:daraus |aus \w+ \w+ )?nicht hervor\b"
    r"|\bkeine (?:informationen|angaben)\b|\bwird nicht (?:erwähnt|genannt)\b"
    r"|\bne (?:mentionne|contient|précise)\w* (?:pas|aucun)|\bno se menciona\b"
    r"|\bneuvád[íě]\b|\bnení (?:uveden|zmín)\w*|\bnije naveden\w*",
    re.IGNORECASE,
)
FILLER = re.compile(  # what models say before they say something
    r"\W*(?:sure|certainly|of course|okay|here (?:is|are)[^.]{0,40}|based on (?:the|this)[^.]{0,40}|natürlich|gerne"
    r"|bien sûr|claro|jistě|naravno)\W*",
    re.IGNORECASE,
)
YES = re.compile(r"\W*(?:yes|yeah|correct|ja|oui|sí|si|sì|sim|tak|ano|áno|da)\b\W*", re.IGNORECASE)
NO = re.compile(r"\W*(?:no|nope|nein|non|não|nee|nie|ne)\b\W*", re.IGNORECASE)


def say_unknown(language: str) -> str:
    return UNKNOWN.get(language, UNKNOWN["en"])


def say_no_model(language: str) -> str:
    return NO_MODEL.get(language, NO_MODEL["en"])


def say_model_failed(language: str) -> str:
    return MODEL_FAILED.get(language, MODEL_FAILED["en"])


def name_language(code: str | None) -> str:
    """What a model is told to answer in."""
    return LANGUAGES.get(code or "", "the language of the question")


def admits_ignorance(sentence: str, verdict: Verdict) -> bool:
    """Whether a sentence says that the answer is not known, and not that something is not so."""
    return IGNORANCE.search(sentence) is not None or (
        verdict not in KEPT_VERDICTS and LACK.search(sentence) is not None
    )
