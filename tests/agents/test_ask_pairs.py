"""Pairs of a sentence and a passage with nearly the same words: some say the same, some do not."""

import pytest
from evidence import passage
from unseen_pairs import UNSEEN_FALSE, UNSEEN_TRUE, Pair

from gristmill.agents.ask.checking import check_sentence
from gristmill.agents.ask.model import KEPT_VERDICTS

# what the sentence says is false, or is not said, by the passage behind it …
FALSE = [
    ("Version 2.1 fixes the bug.", "Version 2.10 fixes the bug."),
    ("The tariff is 5 percent.", "The tariff is 5 per mille."),
    (
        "Sales in Germany were 5 million and in France 3 million.",
        "Sales in Germany were 3 million and in France 5 million.",
    ),
    ("Prices increased by 5 percent.", "Prices increased to 5 percent."),
    ("The CEO of Acme is Anna Berg.", "Anna Berg criticised Acme. The CEO of Acme is Karl Voss."),
    ("The contract was signed by Anna in 2020.", "The contract was drafted by Anna in 2020 and signed by Bob."),
    ("Smoking is safe.", "Critics called the statement that smoking is safe a lie."),
    ("According to the report, smoking is safe.", "The report disputes the claim that smoking is safe."),
    ("The bridge is longer than the tunnel.", "The tunnel is longer than the bridge."),
    ("Section 4.1 names the fee.", "Section 4.10 names the fee."),
    ("Release v3.2 supports PostgreSQL.", "Release v3.20 supports PostgreSQL."),
    ("Clause 7.3 limits the liability.", "Clause 7.30 limits the liability."),
    ("The bug is fixed in release 1.9.", "The bug is fixed in release 1.90."),
    ("The fee rose by 50 percent.", "The fee rose by 50 basis points."),
    ("The fee is 3 % of the sum.", "The fee is 3 ‰ of the sum."),
    ("The share is 5 percent.", "The share rose by 5 percentage points."),
    ("The rent was reduced to 200 euros.", "The rent was reduced by 200 euros."),
    ("The workforce grew by 40 people.", "The workforce grew to 40 people."),
    ("The temperature fell from 20 degrees.", "The temperature fell to 20 degrees."),
    ("Anna is 42 and Bob is 35 years old.", "Anna is 35 and Bob is 42 years old."),
    ("Vienna had 12 cases and Graz had 7 cases.", "Vienna and Graz had 7 and 12 cases respectively."),
    (
        "The mill produced 40 tonnes in 2019 and 55 tonnes in 2020.",
        "The mill produced 55 tonnes in 2019 and 40 tonnes in 2020.",
    ),
    ("Acme paid EUR 500 to Globex and EUR 700 to Initech.", "Acme paid EUR 700 to Globex and EUR 500 to Initech."),
    (
        "The director of the museum is Paul Winter.",
        "Paul Winter visited the museum. It rained. The tour took an hour. The director of the museum is Ines Kolar.",
    ),
    ("The bridge was designed by Ole Berg.", "The bridge was painted by Ole Berg and designed by Ida Holm."),
    ("The letter was written by Karl.", "The letter was dictated by Karl and written by Eva."),
    ("Anna sold the house to Bob.", "Bob sold the house to Anna."),
    ("The mayor took bribes.", "The mayor denies the allegation that he took bribes."),
    ("The vaccine causes autism.", "Studies refuted the claim that the vaccine causes autism."),
    ("The factory will close.", "The company rejected the rumour that the factory will close."),
    ("The tower is leaning.", "It is a myth that the tower is leaning."),
    ("The painting is genuine.", "Experts doubt that the painting is genuine."),
    ("Iron is heavier than copper.", "Copper is heavier than iron."),
    ("The old mill produces more flour than the new mill.", "The new mill produces more flour than the old mill."),
    ("Anna is older than Bob.", "Bob is older than Anna."),
    ("The flood came after the fire.", "The fire came after the flood."),
    ("Anna arrived before Bob.", "Bob arrived before Anna."),
    ("The lease ends before 31 March 2027.", "The lease ends after 31 March 2027."),
    ("The pump runs below 40 degrees.", "The pump runs above 40 degrees."),
    ("Interest rates fell by 25 basis points.", "Interest rates fell by 25 percentage points."),
    ("Globex supplies Acme with bearings.", "Acme supplies Globex with bearings."),
    ("The minister confirmed that the dam is safe.", "The minister denied that the dam is safe."),
    ("Turnover was higher in Austria than in Hungary.", "Turnover was higher in Hungary than in Austria."),
    ("The new turbine is quieter than the old one.", "The old turbine is quieter than the new one."),
    ("Chapter 3.2 describes the boiler.", "Chapter 3.20 describes the boiler."),
    ("The wheel was repaired by Jonas.", "The wheel was inspected by Jonas and repaired by Priya."),
    ("Lena leads the project.", "Lena wrote the plan. The project is led by Omar."),
    ("The treasurer is Mia Novak.", "Mia Novak opened the meeting. The treasurer is Tom Hale."),
    ("Output dropped in March.", "Output climbed in March."),
    ("The second pump failed.", "The third pump failed."),
    ("The east wing was renovated.", "The west wing was renovated."),
    (
        "The 2019 budget was 4 million and the 2020 budget was 6 million.",
        "The 2019 budget was 6 million and the 2020 budget was 4 million.",
    ),
    (
        "Salaries make up 40 percent and rent 20 percent of the costs.",
        "Salaries make up 20 percent and rent 40 percent of the costs.",
    ),
    ("The price was lowered to EUR 30.", "The price was lowered by EUR 30."),
    ("The court found the contract valid.", "The court found the contract invalid."),
    ("The shop is open on Sundays.", "The shop is closed on Sundays."),
    ("It is certain that the miller stole the grain.", "Nobody proved the allegation that the miller stole the grain."),
    ("The minimum order is 50 pieces.", "The maximum order is 50 pieces."),
    ("Karl is the father of Eva.", "Eva is the father of Karl."),
    ("The tenant pays the landlord EUR 500.", "The landlord pays the tenant EUR 500."),
    ("Oil imports rose.", "Oil exports rose."),
    ("The warranty is valid until 1 June 2027.", "The warranty is valid from 1 June 2027."),
    ("The dose was doubled to 40 mg.", "The dose was raised by 40 mg."),
    ("Ms Keller approved the order.", "The order was placed by Ms Keller and approved by Mr Dorn."),
    (
        "The older engine uses less fuel than the newer engine.",
        "The newer engine uses less fuel than the older engine.",
    ),
    ("Support for release 4.3 ends in May.", "Support for release 4.30 ends in May."),
    ("Brno received 200 crates and Olomouc 350 crates.", "Brno received 350 crates and Olomouc 200 crates."),
    ("Brno received 200 crates.", "Brno received 350 crates and Olomouc 200 crates."),
    ("The top shelf holds the flour.", "The bottom shelf holds the flour."),
    (
        "The auditors say that the accounts are correct.",
        "The auditors contest the statement that the accounts are correct.",
    ),
    ("The fuse blew after the lamp went out.", "The fuse blew before the lamp went out."),
    ("The supplier shortened the delivery time.", "The supplier extended the delivery time."),
    ("Revenue exceeded costs.", "Costs exceeded revenue."),
    ("The buyer bears the costs of transport.", "The seller bears the costs of transport."),
    ("The meeting was postponed from Monday to Friday.", "The meeting was postponed from Friday to Monday."),
    # whom a pronoun means is not known where two are named before it
    ("Karl Voss founded the mill in 1868.", "Anna Berg met Karl Voss in Brno. He founded the mill in 1868."),
    ("Anna Berg founded the mill in 1868.", "Anna Berg met Karl Voss in Brno. She founded the mill in 1868."),
    ("Anna Berg founded the mill in 1868.", "Anna Berg talked with Karl Voss. He founded the mill in 1868."),
    ("Bob is 42 years old.", "Anna met Bob in Vienna. She is 42 years old."),
    ("Globex makes bearings.", "Acme bought Globex in May. It makes bearings."),
    ("The CEO of Globex is Karl Voss.", "Acme sued Globex in May. Its CEO is Karl Voss."),
    ("Karl Voss founded the mill in 1868.", "He founded the mill in 1868. Karl Voss was his father."),
    (
        "Anna Berg was born in Brno and founded the mill in 1868.",
        "Anna Berg was born in Brno. Eva Holm was her teacher. She founded the mill in 1868.",
    ),
    ("Anna Berg sold the mill in 1990.", "Anna Berg and Karl Voss inherited the mill. They sold it in 1990."),
    (
        "Anna Berg founded the mill in 1868.",
        "Anna Berg was born in Brno. Karl Voss said that he founded the mill in 1868.",
    ),
    ("Ms Keller approved the order.", "Ms Keller wrote to Mr Dorn. He approved the order."),
    ("Dorn left the firm in 1990.", "Keller followed Dorn to Graz. He left the firm in 1990."),
]
# … or the passage says the opposite
OPPOSITE = [
    ("The drug increases blood pressure.", "The drug lowers blood pressure."),
    ("The bridge was built before the flood.", "The bridge was built after the flood."),
    ("The first invoice was paid.", "The second invoice was paid."),
    ("The left bearing broke.", "The right bearing broke."),
    ("Sales rose in spring.", "Sales dropped in spring."),
    ("The rate is higher than last year.", "The rate is lower than last year."),
    ("The company raised its prices.", "The company reduced its prices."),
    ("The upper shaft is worn.", "The lower shaft is worn."),
    ("The northern gate is open.", "The southern gate is open."),
    ("The second meeting was cancelled.", "The third meeting was cancelled."),
    ("The profits increased in 2020.", "The profits declined in 2020."),
    ("The plan was accepted by the board.", "The plan was rejected by the board."),
    ("The shop opens at nine.", "The shop closes at nine."),
]
TRUE = [
    ("Version 2.10 fixes the bug.", "Version 2.10 fixes the bug."),
    ("The bug is fixed in version 2.10.", "Version 2.10 fixes the bug that was found in May."),
    ("Section 4.1 names the fee.", "The fee is named in section 4.1 of the contract."),
    ("Release v3.2 supports PostgreSQL.", "PostgreSQL is supported by release v3.2."),
    ("The fee is 2.50 euros.", "The fee is 2.5 euros."),
    ("The tariff is 5 percent.", "The tariff is 5 %."),
    ("The fee is 3 per mille of the sum.", "The fee is 3 ‰ of the sum."),
    ("Prices increased by 5 percent.", "Prices rose by 5 percent."),
    ("Prices increased to 5 euros.", "The prices have increased to EUR 5."),
    ("The rent was reduced by 200 euros.", "The rent was reduced by EUR 200 to EUR 800."),
    ("The rent was reduced to 800 euros.", "The rent was reduced by EUR 200 to EUR 800."),
    ("The price was increased by 200 euros.", "The price increase was EUR 200."),
    (
        "Sales in Germany were 5 million and in France 3 million.",
        "Sales in France were 3 million and in Germany 5 million.",
    ),
    ("Sales in Germany were 5 million.", "Sales in Germany and France were 5 and 3 million respectively."),
    ("Vienna had 12 cases and Graz had 7 cases.", "Vienna and Graz had 12 and 7 cases respectively."),
    ("Anna is 42 and Bob is 35 years old.", "Anna is 42 years old. Bob is 35 years old."),
    ("Acme paid EUR 500 to Globex and EUR 700 to Initech.", "Acme paid Globex EUR 500 and Initech EUR 700."),
    (
        "The mill produced 40 tonnes in 2019 and 55 tonnes in 2020.",
        "In 2019 the mill produced 40 tonnes, in 2020 it produced 55 tonnes.",
    ),
    ("The CEO of Acme is Karl Voss.", "Anna Berg criticised Acme. The CEO of Acme is Karl Voss."),
    ("Karl Voss is the CEO of Acme.", "Acme makes wheels. Its CEO is Karl Voss."),
    ("Anna Berg criticised Acme.", "Anna Berg, a journalist, criticised Acme in May. The CEO of Acme is Karl Voss."),
    ("Anna Berg founded the mill in 1868.", "Anna Berg was born in Brno. She founded the mill in 1868."),
    ("The contract was signed by Bob.", "The contract was drafted by Anna in 2020 and signed by Bob."),
    ("Bob signed the contract.", "The contract was drafted by Anna in 2020 and signed by Bob."),
    ("Anna drafted the contract in 2020.", "The contract was drafted by Anna in 2020 and signed by Bob."),
    ("The bridge was designed by Ida Holm.", "The bridge was painted by Ole Berg and designed by Ida Holm."),
    ("The report disputes the claim that smoking is safe.", "The report disputes the claim that smoking is safe."),
    (
        "Critics called the statement that smoking is safe a lie.",
        "Critics called the statement that smoking is safe a lie.",
    ),
    ("The report disputes that smoking is safe.", "The report disputes the claim that smoking is safe."),
    ("Smoking is dangerous.", "The report proved the claim that smoking is dangerous."),
    ("The mayor denies that he took bribes.", "The mayor denies the allegation that he took bribes."),
    ("The offer was rejected by the board.", "The board rejected the offer."),
    ("Anna disputes the invoice.", "Anna disputes the invoice of May."),
    ("The drug increases blood pressure.", "The drug raises blood pressure."),
    ("Sales fell in spring.", "Sales dropped in spring."),
    ("The company raised its prices.", "The company increased its prices in May."),
    ("The bridge was built before the flood.", "Before the flood, the bridge was built."),
    ("The bridge was built before the flood.", "The bridge was built long before the flood and repaired after it."),
    ("The first invoice was paid.", "The first invoice was paid, the second invoice was not."),
    ("The second invoice was not paid.", "The first invoice was paid, the second invoice was not paid."),
    ("The left bearing broke.", "The left bearing broke, and the right bearing was replaced."),
    ("The right bearing was replaced.", "The left bearing broke, and the right bearing was replaced."),
    ("The bridge is longer than the tunnel.", "The bridge is much longer than the tunnel."),
    ("The tunnel is shorter than the bridge.", "The bridge is longer than the tunnel."),
    ("Anna is older than Bob.", "Anna, a painter, is three years older than Bob."),
    ("The old mill produces more flour than the new mill.", "The old mill produces far more flour than the new mill."),
    ("The flood came after the fire.", "The flood came two days after the fire."),
    ("The fire was followed by the flood.", "The flood followed the fire."),
    ("The warranty covers the first two years.", "The warranty covers the first 2 years."),
    ("The mill has the right to close the weir.", "The mill has the right to close the weir in winter."),
    ("Less water flows in the upper channel.", "Less water flows in the upper channel than in the lower channel."),
    ("More people came than in 2019.", "In 2020 more people came than in 2019."),
    ("It took more than 5 days.", "It took more than 5 days to repair the wheel."),
    ("The deadline was moved from 3 May to 5 May 2026.", "We moved the deadline from 3 May to 5 May 2026."),
    ("The meeting lasted from 9:00 to 11:00.", "The meeting took from 9:00 to 11:00 and lasted long."),
    ("The temperature fell to 3 degrees.", "At night the temperature fell to 3 degrees."),
    ("The wall is up to 3 metres high.", "The wall is up to 3 metres high."),
    ("Anna bought the house from Bob.", "Anna bought the house from Bob in 2019."),
    ("The lower shaft is worn.", "The lower shaft is worn, the upper one is fine."),
    ("The board approved the plan in the first meeting.", "In its first meeting, the board approved the plan."),
    ("Sales increased while costs fell.", "Costs fell while sales increased."),
    (
        "The company paid 5 million in Germany and 3 million in France.",
        "In Germany the company paid 5 million, in France 3 million.",
    ),
    ("Karl was paid EUR 300 by Acme.", "Acme paid Karl EUR 300."),
    ("The invoice was paid last year.", "Last year the invoice was paid."),
    ("The plan was accepted by the board.", "The board accepted the plan after long doubts."),
    ("The lease ends on 31 March 2027.", "The lease ends on 31 March 2027, after ten years."),
    ("The pump runs above 40 degrees.", "Above 40 degrees, the pump runs."),
    ("Interest rates fell by 25 basis points.", "The bank lowered interest rates by 25 basis points."),
    ("Interest rates fell by 0.25 percentage points.", "Interest rates fell by 25 basis points."),
    ("Acme supplies Globex with bearings.", "Globex is supplied with bearings by Acme."),
    ("The minister denied that the dam is unsafe.", "The minister denied that the dam is unsafe."),
    ("Turnover was higher in Hungary than in Austria.", "In Hungary, turnover was higher than in Austria."),
    ("The new turbine is quieter.", "The new turbine is quieter than the old one."),
    ("Chapter 3.2 describes the boiler.", "The boiler is described in chapter 3.2."),
    ("Priya repaired the wheel.", "The wheel was inspected by Jonas and repaired by Priya."),
    ("Omar leads the project.", "Lena wrote the plan. The project is led by Omar."),
    ("Tom Hale is the treasurer.", "Mia Novak opened the meeting. The treasurer is Tom Hale."),
    ("Output rose in March.", "Output climbed in March after a decline in February."),
    ("The third pump failed.", "The third pump failed, after the second one."),
    (
        "The budget rose from 4 million in 2019 to 6 million in 2020.",
        "The 2019 budget was 4 million and the 2020 budget was 6 million.",
    ),
    ("Rent makes up 20 percent of the costs.", "Salaries make up 40 percent and rent 20 percent of the costs."),
    ("The price was lowered by EUR 30 to EUR 90.", "We lowered the price by EUR 30, to EUR 90."),
    ("The court found that the contract is invalid.", "The court found the contract invalid."),
    ("The shop is closed on Sundays.", "On Sundays the shop is closed, on Mondays it is open."),
    ("The minimum order is 50 pieces.", "The minimum order is 50 pieces, the maximum order 500 pieces."),
    ("Oil imports rose.", "Oil imports rose, while exports fell."),
    ("Lower costs increased the profit.", "The profit increased because of lower costs."),
    ("Mia Novak opened the meeting in Graz.", "The meeting took place in Graz. Mia Novak opened it."),
    ("Acme moved from Vienna to Graz in 2015.", "In 2015 Acme moved its seat from Vienna to Graz."),
    (
        "Anna Berg, who works for Acme, signed the contract with Globex.",
        "Anna Berg works for Acme. She signed the contract with Globex.",
    ),
    ("The repair took 3 days, and the test 2 days.", "The repair took three days and the test two days."),
    ("The contract was signed by Anna Berg and Bob Hill.", "Anna Berg and Bob Hill signed the contract."),
    ("The fee is between 2 and 3 percent.", "The fee is between 2 % and 3 %."),
    ("According to Karl, the first test failed.", "Karl said that the first test failed and the second passed."),
    ("In May, sales grew by 5 percent.", "Sales grew by 5 percent in May."),
    ("The warranty is valid until 1 June 2027.", "The warranty is valid from 1 June 2025 until 1 June 2027."),
    ("The dose was raised to 40 mg.", "The dose was raised by 20 mg to 40 mg."),
    ("Mr Dorn approved the order.", "The order was placed by Ms Keller and approved by Mr Dorn."),
    ("The newer engine uses less fuel.", "The newer engine uses less fuel than the older engine."),
    ("Weiss carried out the tests in Linz.", "Hartmann planned the tests. They were carried out in Linz by Weiss."),
    ("Support for release 4.3 ends in May.", "In May, support ends for release 4.3."),
    ("Olomouc received 200 crates.", "Brno received 350 crates and Olomouc 200 crates."),
    ("Brno received more crates than Olomouc.", "Brno received more crates, 350, than Olomouc with 200."),
    ("The flour is on the bottom shelf.", "The bottom shelf holds the flour, the top shelf the tools."),
    (
        "The auditors contest that the accounts are correct.",
        "The auditors contest the statement that the accounts are correct.",
    ),
    ("The fuse blew before the lamp went out.", "Before the lamp went out, the fuse blew."),
    (
        "The supplier shortened the delivery time by two days.",
        "The delivery time was shortened by 2 days by the supplier.",
    ),
    ("Costs exceeded revenue in 2021.", "In 2021 costs exceeded revenue for the first time."),
    (
        "The seller bears the costs of transport.",
        "The costs of transport are borne by the seller; the buyer bears those of insurance.",
    ),
    (
        "The meeting was postponed from Friday to Monday.",
        "We postponed Friday's meeting from Friday to Monday because Anna Berg is ill.",
    ),
    (
        "Anna Berg manages the warehouse in Graz.",
        "Our team: Anna Berg manages the warehouse in Graz, Tom Hale the shop in Linz.",
    ),
    (
        "The company was founded by Ida Holm in 1921 and sold in 1980.",
        "Holm & Sons was founded in 1921 by Ida Holm. In 1980 the company was sold.",
    ),
    (
        "Acme's profit fell to EUR 2 million because sales dropped.",
        "Acme had a bad year: sales dropped, and its profit fell to EUR 2 million.",
    ),
    # a pronoun means the one name before it
    ("HT-2026-014 runs for three years.", "HT-2026-014 was signed by both parties. It runs for three years."),
    ("Acme makes bearings.", "Acme was founded on 4 May 2026. It makes bearings."),
    ("Anna Berg signed the contract.", "On Monday, 4 May, Anna Berg came to Graz. She signed the contract."),
    ("Anna Berg signed the contract.", "Meeting of 26 May 2026. Anna Berg came. She signed the contract."),
    (
        "Tomas Lindqvist delivered the wheel one week late.",
        "The wheel was ordered in March. Tomas Lindqvist promised it for April. He delivered the wheel one week late.",
    ),
    ("The Slow Mill has six floors.", "The Slow Mill stands in Aldermoor. It has six floors."),
    (
        "Aldermoor Mill was built in 1790.",
        "Aldermoor Mill is the oldest mill of the county. It was built in 1790 by a miller from Holland.",
    ),
    (
        "Ida Holm founded the works in 1921.",
        "Ida Holm (1890–1950) was a Danish engineer. In 1921 she founded the works.",
    ),
    (
        "Ida Holm studied in Vienna.",
        "Ida Holm was a Danish engineer. She was born in Aarhus. She studied in Vienna. She died in 1950.",
    ),
    (
        "Ida Holm died in 1950.",
        "Ida Holm was a Danish engineer. She was born in Aarhus. She studied in Vienna. She died in 1950.",
    ),
    ("Karl Voss founded the mill in 1868.", "Karl Voss was born in Brno. He founded the mill in 1868."),
    ("Anna Berg founded the mill in 1868.", "Anna Berg worked for Acme in Vienna. She founded the mill in 1868."),
    ("Acme makes bearings.", "Acme was founded in Graz in 1990. It makes bearings."),
    ("The CEO of Globex is Karl Voss.", "Globex grew fast. Its CEO is Karl Voss."),
    (
        "Anna Berg and Karl Voss sold the mill in 1990.",
        "Anna Berg and Karl Voss inherited the mill. They sold it in 1990.",
    ),
    (
        "Karl Voss founded the mill in 1868.",
        "Anna Berg met Karl Voss in Brno. Karl Voss founded the mill in 1868, and he sold it later.",
    ),
    ("Berg sold the house in 1990.", "Anna Berg inherited a house. Berg was a painter. She sold the house in 1990."),
    ("Ms Keller approved the order.", "Ms Keller works for Globex Ltd in Graz. She approved the order."),
    ("Globex Ltd makes bearings.", "Globex Ltd hired Mr Dorn in May. It makes bearings."),
    ("Karl Voss sold Globex to Acme in 1990.", "Globex was founded in 1900. Karl Voss sold it to Acme in 1990."),
    (
        "Holm Mill was rebuilt in 1921.",
        "Ida Holm led the works. Holm Mill was rebuilt in 1921, and its wheel was replaced.",
    ),
    (
        "Priya Raman measured the play on 3 May 2026.",
        "The wheel was hung in spring. Priya Raman measured the play on 3 May 2026; she wrote it down.",
    ),
]
FALSE_ELSEWHERE = [
    (
        "de",
        "Karl Voss gründete die Mühle im Jahr 1868.",
        "Anna Berg traf Karl Voss in Linz. Er gründete die Mühle im Jahr 1868.",
    ),
    ("de", "Anna Berg verkaufte das Haus.", "Anna Berg besuchte Eva Holm. Sie verkaufte das Haus."),
    ("cs", "Karel Voss založil mlýn v roce 1868.", "Karel Voss navštívil Petr Holm. On založil mlýn v roce 1868."),
    ("cs", "Karel Voss prodal dům.", "Karel Voss a Petr Holm zdědili dům. Jeho bratr prodal dům."),
    ("hr", "Ivan Horvat osnovao je mlin 1868.", "Ivan Horvat i Petar Kos došli su u Split. On je osnovao mlin 1868."),
    ("hr", "Ana Kos prodala je kuću.", "Ana Kos i Eva Babić kupile su kuću. Ona je prodala kuću."),
    ("de", "Die Brücke ist länger als der Tunnel.", "Der Tunnel ist länger als die Brücke."),
    ("de", "Rauchen ist ungefährlich.", "Der Bericht bestreitet die Behauptung, dass Rauchen ungefährlich ist."),
    ("de", "Die Preise stiegen um 5 Prozent.", "Die Preise stiegen auf 5 Prozent."),
    ("de", "Der Zoll beträgt 5 Prozent.", "Der Zoll beträgt 5 Promille."),
    ("de", "Version 2.1 behebt den Fehler.", "Version 2.10 behebt den Fehler."),
    ("cs", "Zpráva je pravdivá.", "Svědci popřeli tvrzení, že zpráva je pravdivá."),
    ("hr", "Vijest je istinita.", "Svjedoci su osporili tvrdnju da je vijest istinita."),
]
OPPOSITE_ELSEWHERE = [
    ("de", "Das Medikament erhöht den Blutdruck.", "Das Medikament senkt den Blutdruck."),
    ("de", "Die Brücke wurde vor der Flut gebaut.", "Die Brücke wurde nach der Flut gebaut."),
    ("de", "Die erste Rechnung wurde bezahlt.", "Die zweite Rechnung wurde bezahlt."),
    ("de", "Das linke Lager ist gebrochen.", "Das rechte Lager ist gebrochen."),
    ("cs", "Lék zvyšuje krevní tlak.", "Lék snižuje krevní tlak."),
    ("cs", "Most byl postaven před povodní.", "Most byl postaven po povodni."),
    ("cs", "První faktura byla zaplacena.", "Druhá faktura byla zaplacena."),
    ("cs", "Levé ložisko prasklo.", "Pravé ložisko prasklo."),
    ("hr", "Lijek povećava krvni tlak.", "Lijek snižava krvni tlak."),
    ("hr", "Most je izgrađen prije poplave.", "Most je izgrađen poslije poplave."),
    ("hr", "Prvi račun je plaćen.", "Drugi račun je plaćen."),
    ("hr", "Lijevi ležaj je puknuo.", "Desni ležaj je puknuo."),
]
TRUE_ELSEWHERE = [
    (
        "de",
        "Karl Voss gründete die Mühle im Jahr 1868.",
        "Karl Voss wurde in Linz geboren. Er gründete die Mühle im Jahr 1868.",
    ),
    ("de", "Anna Berg verkaufte das Haus.", "Anna Berg besuchte die Stadt. Sie verkaufte das Haus."),
    ("cs", "Karel Voss založil mlýn v roce 1868.", "Karel Voss se narodil v Brně. On založil mlýn v roce 1868."),
    ("cs", "Eva Holm prodala dům.", "Eva Holm zdědila dům. Ona prodala dům."),
    ("hr", "Ivan Horvat osnovao je mlin 1868.", "Ivan Horvat rođen je u Splitu. On je osnovao mlin 1868."),
    ("hr", "Ana Kos prodala je kuću.", "Ana Kos živi u Zagrebu. Ona je prodala kuću."),
    ("de", "Das Medikament erhöht den Blutdruck.", "Das Medikament steigert den Blutdruck."),
    ("de", "Die Brücke wurde vor der Flut gebaut.", "Vor der Flut wurde die Brücke gebaut."),
    ("de", "Die erste Rechnung wurde bezahlt.", "Die erste Rechnung wurde im Mai bezahlt, die zweite nicht."),
    ("de", "Die Brücke ist länger als der Tunnel.", "Die Brücke ist viel länger als der Tunnel."),
    ("de", "Die Preise stiegen um 5 Prozent.", "Die Preise stiegen im Mai um 5 %."),
    ("de", "Version 2.10 behebt den Fehler.", "Der Fehler wird mit Version 2.10 behoben."),
    ("cs", "Lék zvyšuje krevní tlak.", "Tento lék zvyšuje krevní tlak."),
    ("cs", "První faktura byla zaplacena.", "První faktura byla zaplacena v květnu."),
    ("hr", "Lijek povećava krvni tlak.", "Ovaj lijek povećava krvni tlak."),
    ("hr", "Most je izgrađen prije poplave.", "Prije poplave je izgrađen most."),
]
# the language and text of the sentence, then those of the passage: contracts, minutes, mails and manuals
FALSE_AT_WORK: list[Pair] = [
    (
        "en",
        "The landlord must repair the roof within ten days of the notice.",
        "en",
        "The tenant must repair the roof within ten days of the notice.",
    ),
    (
        "en",
        "The customer may terminate the agreement with 30 days notice.",
        "en",
        "The supplier may terminate the agreement with 30 days notice.",
    ),
    ("en", "The buyer may pay the customs duty.", "en", "The buyer must pay the customs duty."),
    (
        "en",
        "The supplier shall collect the goods from the warehouse.",
        "en",
        "The supplier shall deliver the goods to the warehouse.",
    ),
    ("en", "The server was restarted because of the backup.", "en", "The server was restarted before the backup."),
    (
        "en",
        "Aspirin causes strokes in patients.",
        "en",
        "Patients who took aspirin had fewer strokes than those who took placebo.",
    ),
    (
        "en",
        "The board approved the budget for Munich.",
        "en",
        "The board approved the budget of 2 million EUR for Berlin; the request of Munich is pending.",
    ),
    (
        "en",
        "Peter works in the office in Vienna.",
        "en",
        "Peter works in the office in Prague. Maria works in the office in Vienna.",
    ),
    (
        "en",
        "The meeting is on Thursday at 9:00.",
        "en",
        "The meeting is on Tuesday at 14:00; the call with the bank is on Thursday at 9:00.",
    ),
    (
        "en",
        "Invoice 4712 over 300 EUR was paid.",
        "en",
        "Invoice 4711 over 300 EUR was paid. Invoice 4712 over 500 EUR is open.",
    ),
    (
        "en",
        "The valve closes when the pressure exceeds 5 bar.",
        "en",
        "The valve opens when the pressure exceeds 5 bar.",
    ),
    (
        "en",
        "The password must be changed within 90 days of leaving.",
        "en",
        "The password must be changed every 90 days.",
    ),
    ("de", "Alle Besucher dürfen abstimmen.", "de", "Nur Mitglieder dürfen abstimmen."),
    ("en", "The warranty covers the battery.", "en", "The warranty covers the motor. The battery is excluded."),
    ("en", "The router was replaced.", "en", "All devices except the router were replaced."),
    (
        "en",
        "We decided to move the plant to Poland.",
        "en",
        "We considered moving the plant to Poland, but decided to stay in Linz.",
    ),
    # across languages
    (
        "de",
        "Anna Novak verkaufte die Mühle in Brno im Jahr 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Anna Novak wurde 1924 in Brno verhaftet und verurteilt.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "cs",
        "Anna Novak zemřela v Brno v roce 1924 na tuberkulózu.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Acme Ltd erhält jährlich 12.000 EUR.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "de",
        "Der Vertrag mit Acme Ltd beginnt am 31. März 2027.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    # contracts
    ("en", "The licensee owns all improvements.", "en", "The licensor owns all improvements."),
    (
        "en",
        "The seller must insure the goods until delivery.",
        "en",
        "The seller must store the goods until delivery to the port; the carrier must label them.",
    ),
    ("en", "All employees receive a bonus.", "en", "All employees other than trainees receive a bonus."),
    ("en", "Trainees receive a bonus.", "en", "All employees other than trainees receive a bonus."),
    ("en", "The deductible is paid by the insurer.", "en", "The deductible is paid by the insured."),
    ("de", "Der Auftraggeber stellt die Werkzeuge.", "de", "Der Auftragnehmer stellt die Werkzeuge."),
    ("de", "Der Käufer darf die Ware prüfen.", "de", "Der Käufer muss die Ware prüfen."),
    (
        "de",
        "Haustiere sind erlaubt.",
        "de",
        "Alle Kleintiere außer Hunden sind erlaubt.",
    ),
    ("cs", "Nájemce hradí opravu střechy.", "cs", "Pronajímatel hradí opravu střechy."),
    ("hr", "Kupac snosi troškove prijevoza.", "hr", "Prodavatelj snosi troškove prijevoza."),
    # minutes and mails
    (
        "en",
        "Nora orders the samples by Friday.",
        "en",
        "Nora tests the samples by Friday. Emil orders the labels by Monday.",
    ),
    (
        "en",
        "The budget for training was cut.",
        "en",
        "The budget for travel was cut; the budget for training stays as it is.",
    ),
    (
        "en",
        "We will ship the order on 12 May.",
        "en",
        "We hoped to ship the order on 12 May, but will ship it on 19 May.",
    ),
    ("de", "Tim übernimmt die Abrechnung.", "de", "Tim übernimmt die Planung. Ute übernimmt die Abrechnung."),
    (
        "cs",
        "Porada se koná ve čtvrtek v Brně.",
        "cs",
        "Porada se koná ve středu v Brně. Školení se koná ve čtvrtek v Praze.",
    ),
    ("hr", "Ana šalje ponudu u ponedjeljak.", "hr", "Ana šalje račun u ponedjeljak."),
    # manuals
    ("en", "Press the black button to start the motor.", "en", "Press the yellow button to start the motor."),
    ("en", "The oil must be checked after 500 hours.", "en", "The oil must be checked every 500 hours."),
    ("en", "The alarm sounds because of the test.", "en", "The alarm sounds after the test."),
    ("de", "Das Gerät darf mit Benzin gereinigt werden.", "de", "Das Gerät darf mit Wasser gereinigt werden."),
    # across languages
    ("de", "Globex hat am 3. Mai 2026 die Lieferung bestätigt.", "en", "Globex cancelled the delivery on 3 May 2026."),
    (
        "de",
        "Der Vermieter muss binnen 10 Tagen das Dach reparieren.",
        "en",
        "The tenant must repair the roof within 10 days.",
    ),
    ("cs", "Eva Holm byla přijata 1. března 2025.", "en", "Eva Holm was dismissed on 1 March 2025."),
    ("cs", "Acme nezaplatila fakturu 4711.", "en", "Acme paid invoice 4711."),
    ("hr", "Tvrtka Acme kupila je skladište u Splitu 2019.", "en", "Acme sold the warehouse in Split in 2019."),
    ("hr", "Globex je otkazao ugovor 5. svibnja 2026.", "en", "Globex signed the contract on 5 May 2026."),
    ("en", "Karl Voss died in Linz in 1930.", "de", "Karl Voss wurde 1930 in Linz geboren."),
    ("en", "Acme rejected the offer of EUR 5,000.", "cs", "Acme přijala nabídku 5 000 EUR."),
    # what stands elsewhere in the same sentence, or beside it
    ("en", "The pump must be switched off during cleaning.", "en", "The fan must be switched off during cleaning."),
    (
        "en",
        "Guests must not smoke on the balcony.",
        "en",
        "Guests must not smoke in the room. They may smoke on the balcony.",
    ),
    ("en", "Ms Keller leads the sales team.", "en", "Ms Keller leads the support team, Mr Dorn the sales team."),
    (
        "en",
        "The discount applies to orders above 500 EUR.",
        "en",
        "The discount applies to orders above 5,000 EUR; free shipping applies to orders above 500 EUR.",
    ),
    ("en", "Anna reports to Karl.", "en", "Anna and Karl report to Eva."),
    ("en", "The lease can be extended twice.", "en", "The lease can be extended once."),
    (
        "en",
        "The report was sent to the client.",
        "en",
        "The report was sent to the auditor, and a copy was kept for the client.",
    ),
    (
        "en",
        "The company stopped the production of pumps.",
        "en",
        "The company started the production of pumps in May and stopped that of valves.",
    ),
    ("en", "Children under 12 pay the full price.", "en", "Children under 12 pay half the price."),
    ("en", "The software supports Windows and macOS.", "en", "The software supports Windows and Linux."),
    ("en", "The fire was caused by a cigarette.", "en", "The fire was caused by a short circuit."),
    ("en", "The shipment arrived undamaged.", "en", "The shipment arrived damaged."),
    (
        "en",
        "The plaintiff must bear the costs of the proceedings.",
        "en",
        "The defendant must bear the costs of the proceedings.",
    ),
    (
        "en",
        "Doctor Hale prescribed ibuprofen for the patient.",
        "en",
        "Doctor Hale prescribed paracetamol for the patient.",
    ),
    ("en", "The patient is allergic to penicillin.", "en", "The patient is not allergic to penicillin but to latex."),
    ("en", "Only managers can approve refunds.", "en", "Only cashiers can approve refunds."),
    ("en", "Everyone voted for the proposal.", "en", "Everyone but Karl voted for the proposal."),
    ("en", "Nobody objected to the plan.", "en", "Nobody but Karl objected to the plan."),
    ("en", "Karl voted for the proposal.", "en", "Everyone except for Karl voted for the proposal."),
    ("en", "The bank granted the loan.", "en", "The bank refused the loan."),
    ("en", "The loan was granted by the bank.", "en", "The bank was asked for a loan by the company."),
    (
        "en",
        "The mayor opened the new bridge.",
        "en",
        "The minister opened the new bridge in the presence of the mayor.",
    ),
    ("en", "The minister praised the mayor.", "en", "The mayor praised the minister."),
    (
        "en",
        "The machine was bought in 2019 and sold in 2023.",
        "en",
        "The machine was bought in 2018 and sold in 2023; the press was bought in 2019.",
    ),
    ("en", "The printer needs a new cartridge.", "en", "The scanner needs a new lamp, and the printer needs paper."),
    ("en", "The keys are in the office.", "en", "The keys are at the reception. The badges are in the office."),
    ("en", "We will deliver on Monday.", "en", "We will deliver on Tuesday instead of Monday."),
    ("en", "The rent includes heating.", "en", "The rent does not include electricity. Heating is billed separately."),
    ("en", "The rent includes electricity.", "en", "The rent includes heating and water but not electricity."),
    ("de", "Der Strom ist in der Miete enthalten.", "de", "Das Wasser ist in der Miete enthalten, der Strom nicht."),
    ("de", "Die Lieferung erfolgt durch den Hersteller.", "de", "Die Lieferung erfolgt durch den Händler."),
    (
        "de",
        "Das Büro in Wien wurde geschlossen.",
        "de",
        "Das Büro in Prag wurde geschlossen. Das Büro in Wien wurde vergrößert.",
    ),
    ("de", "Der Mieter muss die Heizung warten.", "de", "Der Mieter kann die Heizung warten lassen."),
    ("cs", "Nájemce musí opravit okno.", "cs", "Nájemce může opravit okno."),
    ("cs", "Karel prodal auto.", "cs", "Karel prodal dům. Petr prodal auto."),
    ("hr", "Petar je kupio kuću.", "hr", "Petar je kupio stan. Marko je kupio kuću."),
    ("de", "Karl Voss verlor 2019 den Prozess gegen Acme.", "en", "Karl Voss won the case against Acme in 2019."),
    ("de", "Karl Voss wurde am 3. Mai 2020 entlassen.", "en", "Karl Voss joined Acme on 3 May 2020."),
    ("cs", "Karl Voss odešel z firmy Acme 3. května 2020.", "en", "Karl Voss joined Acme on 3 May 2020."),
    (
        "de",
        "Anna Novak zerstörte 1924 die Mühle in Brno.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Anna Novak kaufte 1924 die Mühle in Brno.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "cs",
        "Anna Novak prodala mlýn v Brno v roce 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "cs",
        "Anna Novak se narodila v Brno v roce 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "hr",
        "Anna Novak prodala je mlin u Brno 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "hr",
        "Anna Novak umrla je u Brno 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "In der Mühle arbeiten nur vier Leute, sagt Anna Novak.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Die Mühle in Brno brannte 1924 ab.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Acme Ltd schuldet 12.000 EUR im Jahr.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "de",
        "Acme Ltd bekommt 12.000 EUR pro Jahr.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "de",
        "Der Vertrag mit Acme Ltd wurde am 31. März 2027 unterschrieben.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "de",
        "Der Vertrag mit Acme Ltd wurde zum 31. März 2027 gekündigt.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "cs",
        "Smlouva s Acme Ltd začíná 31. března 2027.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "hr",
        "Ugovor s Acme Ltd počinje 31. ožujka 2027.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "hr",
        "Acme Ltd prima 12.000 EUR godišnje.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "en",
        "Ms Lang approved the invoice of 500 EUR.",
        "de",
        "Frau Lang hat die Rechnung über 500 EUR nicht genehmigt.",
    ),
    ("en", "Ms Lang approved the invoice of 500 EUR.", "de", "Frau Lang hat die Rechnung über 500 EUR abgelehnt."),
    ("en", "Ms Lang paid the invoice of 500 EUR.", "de", "Frau Lang hat die Rechnung über 500 EUR geprüft."),
    ("en", "Pan Novák signed the contract.", "cs", "Pan Novák smlouvu nepodepsal."),
    ("en", "The shop sells bread on Sundays.", "en", "The shop sells newspapers on Sundays."),
    ("en", "Anna is the sister of Karl.", "en", "Anna is the wife of Karl."),
    ("en", "The train to Brno leaves at 9:15.", "en", "The train to Prague leaves at 9:15, the train to Brno at 9:45."),
    ("en", "The north gate was painted in 2020.", "en", "The north gate was repaired in 2020 and painted in 2022."),
    (
        "en",
        "The firm has offices in Linz and Graz.",
        "en",
        "The firm has offices in Linz and Wels; it closed the one in Graz.",
    ),
    (
        "en",
        "Tests are run every night on the staging server.",
        "en",
        "Tests are run every night on the build server, and every week on the staging server.",
    ),
    (
        "en",
        "Use a dry cloth to clean the lens.",
        "en",
        "Use a damp cloth to clean the lens. Use a dry cloth for the housing.",
    ),
    ("en", "Do not use a damp cloth to clean the lens.", "en", "Use a damp cloth to clean the lens."),
    ("en", "The contract is governed by German law.", "en", "The contract is governed by Austrian law."),
    (
        "en",
        "The seller is liable for hidden defects.",
        "en",
        "The seller is not liable for hidden defects unless he concealed them.",
    ),
    ("en", "The annual fee is 120 EUR.", "en", "The monthly fee is 120 EUR."),
    ("en", "The fee is paid monthly.", "en", "The fee is paid annually."),
    ("en", "Three members voted against the motion.", "en", "Three members voted for the motion, one abstained."),
    ("en", "Anna seconded the motion.", "en", "The motion was proposed by Anna and seconded by Bob."),
    ("en", "The minutes were approved without changes.", "en", "The minutes were approved with two changes."),
    (
        "en",
        "Bob will call the supplier by Friday.",
        "en",
        "Bob will call the customer by Friday. Anna will call the supplier by Monday.",
    ),
    ("en", "The test server is faster than the old one.", "en", "The test server is as fast as the old one."),
    ("en", "The lift was out of order in June.", "en", "The heating was out of order in June."),
    ("en", "Karl sent Anna the keys.", "en", "Anna sent Karl the keys."),
    ("en", "Petra was replaced by Lukas as treasurer.", "en", "Lukas was replaced by Petra as treasurer."),
    ("de", "Die Pumpe läuft bei Nacht.", "de", "Die Pumpe läuft bei Tag."),
    ("de", "Der Betriebsrat hat dem Plan zugestimmt.", "de", "Die Geschäftsleitung hat dem Plan zugestimmt."),
    ("de", "Die Frist endet am Freitag.", "de", "Die Frist beginnt am Freitag."),
    ("cs", "Dodavatel zaplatí pokutu.", "cs", "Odběratel zaplatí pokutu."),
    ("hr", "Dobavljač plaća kaznu.", "hr", "Naručitelj plaća kaznu."),
    ("de", "Nach der Prüfung wird das Gerät gereinigt.", "de", "Vor der Prüfung wird das Gerät gereinigt."),
    ("en", "The old pump leaks.", "en", "The new pump leaks."),
    ("de", "Die alte Pumpe leckt.", "de", "Die neue Pumpe leckt."),
    ("en", "The first shift starts at 6:00.", "en", "The night shift starts at 6:00."),
    ("en", "Karl is responsible for purchasing.", "en", "Karl is responsible for sales, Eva for purchasing."),
    ("en", "The tenant pays for water.", "en", "The landlord pays for water; the tenant pays for electricity."),
    ("en", "The data are stored in Ireland.", "en", "The data are processed in Ireland and stored in Germany."),
    ("en", "The train stops in Wels.", "en", "The train passes through Wels and stops in Linz."),
    (
        "en",
        "The apprentice may operate the saw alone.",
        "en",
        "The apprentice may operate the saw only under supervision.",
    ),
    ("en", "The court dismissed the claim of Acme.", "en", "The court upheld the claim of Acme."),
    ("en", "Karl inherited the mill from his uncle.", "en", "Karl inherited the mill from his father."),
    ("en", "Two of the tests failed.", "en", "Two of the tests passed."),
    (
        "de",
        "Die Montage ist im Preis enthalten.",
        "de",
        "Die Lieferung ist im Preis enthalten; die Montage kostet extra.",
    ),
    ("de", "Herr Beck leitet den Einkauf.", "de", "Herr Beck leitet den Verkauf, Frau Lang den Einkauf."),
    ("en", "The price includes installation.", "en", "The price includes delivery, but not installation."),
]
TRUE_AT_WORK: list[Pair] = [
    (
        "en",
        "The tenant has to repair the roof within ten days.",
        "en",
        "The tenant must repair the roof within ten days of the notice.",
    ),
    (
        "en",
        "The supplier can terminate the agreement with 30 days notice.",
        "en",
        "The supplier may terminate the agreement with 30 days notice.",
    ),
    ("en", "Customs duty must be paid by the buyer.", "en", "The buyer must pay the customs duty."),
    (
        "en",
        "The goods are delivered to the warehouse by the supplier.",
        "en",
        "The supplier shall deliver the goods to the warehouse.",
    ),
    ("en", "Before the backup, the server was restarted.", "en", "The server was restarted before the backup."),
    ("en", "Maria works in Vienna.", "en", "Peter works in the office in Prague. Maria works in the office in Vienna."),
    (
        "en",
        "The call with the bank is on Thursday at 9:00.",
        "en",
        "The meeting is on Tuesday at 14:00; the call with the bank is on Thursday at 9:00.",
    ),
    (
        "en",
        "Invoice 4711 was paid, and invoice 4712 is open.",
        "en",
        "Invoice 4711 over 300 EUR was paid. Invoice 4712 over 500 EUR is open.",
    ),
    ("en", "Every 90 days the password has to be changed.", "en", "The password must be changed every 90 days."),
    ("de", "Abstimmen dürfen nur Mitglieder.", "de", "Nur Mitglieder dürfen abstimmen."),
    (
        "en",
        "The battery is excluded from the warranty.",
        "en",
        "The warranty covers the motor. The battery is excluded.",
    ),
    ("en", "The router was not replaced.", "en", "All devices except the router were replaced."),
    (
        "en",
        "They decided to stay in Linz.",
        "en",
        "We considered moving the plant to Poland, but decided to stay in Linz.",
    ),
    ("en", "All improvements belong to the licensor.", "en", "The licensor owns all improvements."),
    (
        "en",
        "All employees except trainees receive a bonus.",
        "en",
        "All employees other than trainees receive a bonus.",
    ),
    ("en", "The insured pays the deductible.", "en", "The deductible is paid by the insured."),
    (
        "en",
        "According to the minutes, Nora tests the samples by Friday.",
        "en",
        "Nora tests the samples by Friday. Emil orders the labels by Monday.",
    ),
    (
        "en",
        "The travel budget was cut.",
        "en",
        "The budget for travel was cut; the budget for training stays as it is.",
    ),
    (
        "en",
        "The order will be shipped on 19 May.",
        "en",
        "We hoped to ship the order on 12 May, but will ship it on 19 May.",
    ),
    ("en", "The yellow button starts the motor.", "en", "Press the yellow button to start the motor."),
    (
        "en",
        "The oil has to be checked every 500 hours of operation.",
        "en",
        "After each 500 hours of operation, check the oil: the oil has to be checked every 500 hours.",
    ),
    ("en", "The total price is EUR 1,200.", "en", "The price is EUR 1,200 in total."),
    ("en", "The lease began on 1 May 2024.", "en", "The lease started on 1 May 2024 and runs for five years."),
    ("en", "Acme Ltd acquired Globex in 2019.", "en", "In 2019, Acme Ltd bought Globex for EUR 3 million."),
    (
        "en",
        "The company was bought by Acme in 2019.",
        "en",
        "Globex was a family firm. In 2019 Globex was bought by Acme.",
    ),
    ("de", "Die Werkzeuge werden vom Auftragnehmer gestellt.", "de", "Der Auftragnehmer stellt die Werkzeuge."),
    ("de", "Ute macht die Abrechnung.", "de", "Tim übernimmt die Planung. Ute macht die Abrechnung und die Ablage."),
    ("de", "Das Gerät kann mit Wasser gereinigt werden.", "de", "Das Gerät darf mit Wasser gereinigt werden."),
    ("cs", "Opravu střechy hradí pronajímatel.", "cs", "Pronajímatel hradí opravu střechy."),
    (
        "cs",
        "Školení je ve čtvrtek v Praze.",
        "cs",
        "Porada se koná ve středu v Brně. Školení se koná ve čtvrtek v Praze.",
    ),
    ("hr", "Troškove prijevoza snosi prodavatelj.", "hr", "Prodavatelj snosi troškove prijevoza."),
    ("hr", "U ponedjeljak Ana šalje račun.", "hr", "Ana šalje račun u ponedjeljak."),
    (
        "de",
        "Anna Novak gründete die Mühle in Brno im Jahr 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Acme Ltd zahlt jährlich 12.000 EUR.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "de",
        "Der Vertrag mit Acme Ltd endet am 31. März 2027.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "cs",
        "Anna Novak založila mlýn v Brno v roce 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    ("cs", "Acme zaplatila fakturu 4711.", "en", "Acme paid invoice 4711."),
    ("hr", "Acme je prodao skladište u Splitu 2019.", "en", "Acme sold the warehouse in Split in 2019."),
    ("en", "Karl Voss was born in Linz in 1930.", "de", "Karl Voss wurde 1930 in Linz geboren."),
    ("en", "Acme accepted the offer of EUR 5,000.", "cs", "Acme přijala nabídku 5 000 EUR."),
    (
        "en",
        "The roof is the tenant's responsibility.",
        "en",
        "The tenant must repair the roof within ten days of the notice.",
    ),
    (
        "en",
        "The tenant is responsible for repairing the roof.",
        "en",
        "The tenant must repair the roof within ten days of the notice.",
    ),
    ("en", "The price was agreed at EUR 184,500.", "en", "The agreed price is EUR 184,500.00 without tax."),
    (
        "en",
        "Priya Raman is responsible for the site.",
        "en",
        "Site manager is Priya Raman. She reports to Margaret Oakes every second Friday.",
    ),
    ("en", "The wheel was installed on 7 May 2026.", "en", "The wheel was hung on 7 May 2026, one week late."),
    ("en", "The server runs Debian 12.", "en", "Our server runs on Debian 12 since March."),
    ("en", "The meeting starts at 14:00.", "en", "The meeting is on Tuesday at 14:00."),
    (
        "en",
        "The contract was concluded on 12 January 2026.",
        "en",
        "The contract was signed on 12 January 2026 by Margaret Oakes for the Harrow Trust.",
    ),
    ("en", "The trial run takes place on 19 June 2026.", "en", "The trial run of the mill is on 19 June 2026."),
    ("en", "The next meeting is scheduled for 3 June.", "en", "Next meeting: 3 June, 10:00, room 4."),
    ("en", "The invoice must be paid within 30 days.", "en", "The invoice is payable within 30 days."),
    ("en", "Employees have 25 days of vacation.", "en", "Every employee has 25 days of paid leave a year."),
    ("en", "The lease runs for five years.", "en", "The lease starts on 1 May 2024 and has a term of five years."),
    (
        "en",
        "You can reset the device by holding the button for 10 seconds.",
        "en",
        "To reset the device, hold the button for 10 seconds.",
    ),
    (
        "en",
        "Sales increased by 12 percent in 2023.",
        "en",
        "In 2023, revenue grew by 12 % compared with the year before.",
    ),
    (
        "en",
        "The supplier has to provide spare parts for ten years.",
        "en",
        "The supplier shall keep spare parts available for ten years.",
    ),
    ("en", "The flood damaged the lower floor.", "en", "The lower floor was damaged by the flood in 2013."),
    ("en", "The report was written by Eva Holm.", "en", "Author of the report: Eva Holm."),
    (
        "en",
        "Tomas Lindqvist signed for Weir & Wheel Ltd.",
        "en",
        "The contract was signed by Margaret Oakes for the Harrow Trust and by Tomas Lindqvist for Weir & Wheel Ltd.",
    ),
    ("de", "Die Miete beträgt 900 EUR im Monat.", "de", "Die monatliche Miete beläuft sich auf 900 EUR."),
    ("de", "Das Treffen findet am 3. Juni um 10:00 statt.", "de", "Nächste Sitzung: 3. Juni, 10:00, Raum 4."),
    ("de", "Herr Beck hat die Rechnung geprüft.", "de", "Die Rechnung wurde am 3. Mai von Herrn Beck geprüft."),
    ("cs", "Cena je 300 EUR ročně.", "cs", "Roční cena činí 300 EUR."),
    ("cs", "Smlouva platí do 31. prosince 2027.", "cs", "Smlouva je uzavřena na dobu určitou do 31. prosince 2027."),
    ("hr", "Cijena iznosi 300 EUR godišnje.", "hr", "Godišnja cijena je 300 EUR."),
    (
        "de",
        "Der Vertrag wurde am 12. Januar 2026 unterzeichnet.",
        "en",
        "The contract was signed on 12 January 2026 by Margaret Oakes for the Harrow Trust.",
    ),
    ("de", "Der Preis beträgt 184.500,00 EUR.", "en", "The price is EUR 184,500.00 without tax."),
    ("de", "Der Probelauf findet am 19. Juni 2026 statt.", "en", "The trial run of the mill is on 19 June 2026."),
    ("cs", "Cena je 184 500 EUR bez daně.", "en", "The price is EUR 184,500.00 without tax."),
    (
        "cs",
        "Smlouvu podepsala Margaret Oakes 12. ledna 2026.",
        "en",
        "The contract was signed on 12 January 2026 by Margaret Oakes.",
    ),
    (
        "hr",
        "Ugovor je potpisan 12. siječnja 2026.",
        "en",
        "The contract was signed on 12 January 2026 by Margaret Oakes.",
    ),
    (
        "en",
        "The conference will be held in Graz in October.",
        "en",
        "The conference takes place in Graz from 3 to 5 October.",
    ),
    (
        "en",
        "Anna lives in Vienna and works for Acme.",
        "en",
        "Anna, who works for Acme, has lived in Vienna since 2019.",
    ),
    (
        "en",
        "The customer can return goods within 14 days.",
        "en",
        "Goods may be returned by the customer within 14 days of delivery.",
    ),
    (
        "en",
        "The warranty period is two years.",
        "en",
        "The warranty expires two years after delivery; its period is two years.",
    ),
    ("en", "The boiler was serviced in March.", "en", "In March a technician serviced the boiler and the pump."),
    ("en", "Acme's headquarters are in Linz.", "en", "Acme is headquartered in Linz, Austria."),
    ("en", "The CEO resigned after the scandal.", "en", "After the scandal, the CEO stepped down; he resigned in May."),
    ("en", "The project is behind schedule by two weeks.", "en", "The project is two weeks behind schedule."),
    (
        "en",
        "All invoices must be approved by the manager.",
        "en",
        "The manager must approve all invoices before payment.",
    ),
    ("en", "The password needs at least 12 characters.", "en", "Passwords must have at least 12 characters."),
    ("en", "The tank holds 300 litres.", "en", "The capacity of the tank is 300 litres."),
    ("en", "The offer is valid until 30 June.", "en", "Our offer remains valid until 30 June."),
    ("en", "Karl was born in 1950 in Graz.", "en", "Karl Voss (born 1950 in Graz) is a miller."),
    ("en", "The device is charged via USB.", "en", "Charge the device via USB."),
    ("en", "The costs are shared equally.", "en", "The parties share the costs equally."),
    ("en", "Ms Lang sent the offer on Tuesday.", "en", "On Tuesday Ms Lang sent us the offer by mail."),
    (
        "en",
        "The team decided to use PostgreSQL.",
        "en",
        "We agreed to use PostgreSQL instead of MySQL: the team decided so.",
    ),
    (
        "en",
        "The defendant paid EUR 5,000 to the plaintiff.",
        "en",
        "The defendant paid the plaintiff EUR 5,000 in damages.",
    ),
    (
        "en",
        "In 2022 the company made a profit of EUR 2 million.",
        "en",
        "The company closed 2022 with a profit of EUR 2 million.",
    ),
    ("en", "The order was cancelled by the customer.", "en", "The customer cancelled the order on Monday."),
    ("en", "Dr Hale recommends a second examination.", "en", "A second examination is recommended by Dr Hale."),
    ("en", "The city has a population of 120,000.", "en", "The city has 120,000 inhabitants."),
    ("en", "Three of the five pumps failed.", "en", "Of the five pumps, three failed."),
    ("de", "Die Sitzung beginnt um 9:00 Uhr.", "de", "Beginn der Sitzung: 9:00 Uhr."),
    ("de", "Der Vertrag kann jederzeit gekündigt werden.", "de", "Beide Seiten können den Vertrag jederzeit kündigen."),
    ("de", "Die Ware wird am Montag geliefert.", "de", "Am Montag liefert die Spedition die Ware."),
    ("de", "Frau Huber leitet die Abteilung seit 2018.", "de", "Seit 2018 wird die Abteilung von Frau Huber geleitet."),
    ("de", "Das Haus wurde 1920 gebaut.", "de", "Das 1920 gebaute Haus steht in Linz."),
    (
        "de",
        "Der Kunde muss die Rechnung binnen 30 Tagen bezahlen.",
        "de",
        "Rechnungen sind vom Kunden binnen 30 Tagen zu bezahlen.",
    ),
    ("cs", "Smlouva byla podepsána 3. května 2026.", "cs", "Dne 3. května 2026 byla podepsána smlouva o dílo."),
    ("cs", "Pan Novák vede oddělení od roku 2018.", "cs", "Od roku 2018 vede oddělení pan Novák."),
    ("hr", "Ugovor je potpisan 3. svibnja 2026.", "hr", "Dana 3. svibnja 2026. potpisan je ugovor o djelu."),
    ("hr", "Gospođa Horvat vodi odjel od 2018.", "hr", "Od 2018. odjel vodi gospođa Horvat."),
    ("de", "Acme Ltd kaufte Globex im Jahr 2019.", "en", "In 2019, Acme Ltd bought Globex for EUR 3 million."),
    ("de", "Die Garantie beträgt zwei Jahre.", "en", "The warranty is two years."),
    ("cs", "Nájemce platí 900 EUR měsíčně.", "en", "The tenant pays EUR 900 a month."),
    ("hr", "Najmoprimac plaća 900 EUR mjesečno.", "en", "The tenant pays EUR 900 a month."),
    ("en", "The tenant pays EUR 900 a month.", "cs", "Nájemce platí 900 EUR měsíčně."),
    ("en", "The meeting was postponed to 4 May 2026.", "de", "Die Besprechung wurde auf den 4. Mai 2026 verschoben."),
    (
        "de",
        "Anna Novak hat die Mühle 1924 in Brno gegründet.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Die Mühle wurde 1924 von Anna Novak gegründet.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "cs",
        "Mlýn v Brno založila v roce 1924 Anna Novak.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "hr",
        "Mlin je osnovala Anna Novak 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "de",
        "Acme Ltd zahlt 12.000 EUR pro Jahr.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "cs",
        "Acme Ltd platí 12 000 EUR ročně.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    (
        "hr",
        "Ugovor s Acme Ltd završava 31. ožujka 2027.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    ("en", "Ms Lang approved the invoice of 500 EUR.", "de", "Frau Lang hat die Rechnung über 500 EUR genehmigt."),
    ("en", "Acme delivered 300 pumps to Globex.", "de", "Acme lieferte 300 Pumpen an Globex."),
    ("en", "The new pump leaks.", "en", "The new pump leaks, the old one was scrapped."),
    ("en", "Eva is responsible for purchasing.", "en", "Karl is responsible for sales, Eva for purchasing."),
    ("en", "Mr Dorn is the new treasurer.", "en", "Mr Dorn was elected treasurer."),
    ("en", "The data are stored in Germany.", "en", "The data are processed in Ireland and stored in Germany."),
    ("en", "Installation costs extra.", "en", "The price includes delivery; installation costs extra."),
    ("de", "Frau Lang leitet den Einkauf.", "de", "Herr Beck leitet den Verkauf, Frau Lang leitet den Einkauf."),
    ("en", "The tenant pays for electricity.", "en", "The landlord pays for water; the tenant pays for electricity."),
]


def judge(text: str, said: str, language: str | None = "en", spoken: str | None = "") -> str:
    """The verdict, which is the same whether the model names the passage or not."""
    passages = [passage(said, language=language if spoken == "" else spoken)]
    named, _ = check_sentence(text, (1,), passages, language=language)
    unnamed, _ = check_sentence(text, (), passages, language=language)
    assert named == unnamed
    return named.verdict


@pytest.mark.parametrize(("text", "said"), FALSE)
def test_a_sentence_that_its_passage_does_not_say_is_not_supported(text: str, said: str) -> None:
    assert judge(text, said) != "supported"


@pytest.mark.parametrize(("text", "said"), OPPOSITE)
def test_a_sentence_whose_opposite_the_passage_says_is_contradicted(text: str, said: str) -> None:
    assert judge(text, said) == "contradicted"


@pytest.mark.parametrize(("text", "said"), TRUE)
def test_a_sentence_that_its_passage_says_in_other_words_stays_supported(text: str, said: str) -> None:
    assert judge(text, said) == "supported"


@pytest.mark.parametrize(("text", "said"), OPPOSITE)
def test_opposites_contradict_where_the_language_is_not_known(text: str, said: str) -> None:
    assert judge(text, said, None) == "contradicted"


@pytest.mark.parametrize(("language", "text", "said"), FALSE_ELSEWHERE)
def test_what_a_passage_in_another_language_does_not_say_is_not_supported(language: str, text: str, said: str) -> None:
    assert judge(text, said, language) != "supported"


@pytest.mark.parametrize(("language", "text", "said"), OPPOSITE_ELSEWHERE)
def test_opposites_of_other_languages_contradict(language: str, text: str, said: str) -> None:
    assert judge(text, said, language) == "contradicted"


@pytest.mark.parametrize(("language", "text", "said"), TRUE_ELSEWHERE)
def test_what_a_passage_in_another_language_says_stays_supported(language: str, text: str, said: str) -> None:
    assert judge(text, said, language) == "supported"


@pytest.mark.parametrize(("language", "text", "spoken", "said"), FALSE_AT_WORK)
def test_one_exchanged_word_or_a_neighbouring_sentence_supports_nothing(
    language: str, text: str, spoken: str, said: str
) -> None:
    assert judge(text, said, language, spoken) not in ("supported", "partial")


@pytest.mark.parametrize(("language", "text", "spoken", "said"), TRUE_AT_WORK)
def test_what_people_write_at_work_stays_supported_in_other_words(
    language: str, text: str, spoken: str, said: str
) -> None:
    assert judge(text, said, language, spoken) == "supported"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Priya Raman ist die Bauleiterin.", "Site manager is Priya Raman."),
        ("Anna Berg malte 1924 in Linz ein Bild.", "Anna Berg painted a picture in Linz in 1924."),
    ],
)
def test_where_only_names_and_figures_agree_across_languages_it_is_said_so(text: str, said: str) -> None:
    sentence, _ = check_sentence(text, (1,), [passage(said)], language="de")
    assert (sentence.verdict, "only names and figures" in sentence.reason) == ("partial", True)


NOT_SURE: list[Pair] = [
    ("de", "Anna Novak gründete 1924 die Schule in Brno.", "en", "Anna Novak founded the mill in Brno in 1924."),
    ("de", "Globex kaufte Acme im Jahr 2019.", "en", "Acme bought Globex in 2019."),
    ("de", "Acme wurde 2019 von Globex gekauft.", "en", "Acme bought Globex in 2019."),
    ("cs", "Acme zaplatila 500 EUR za květiny.", "en", "Acme paid EUR 500 for the ventilation."),
    (
        "de",
        "Anna Novak gründete die Mühle in Brno nicht 1924.",
        "en",
        "Anna Novak founded the mill in Brno in 1924. It employs forty people.",
    ),
    (
        "fr",
        "Acme Ltd reçoit 12 000 EUR par an.",
        "en",
        "The contract with Acme Ltd ends on 31 March 2027. Acme Ltd pays 12,000 EUR a year.",
    ),
    ("de", "Herr Beck wurde am 3. Mai 2026 operiert.", "en", "Mr Beck resigned on 3 May 2026."),
    (
        "de",
        "Der Vermieter darf die Wohnung am 3. Mai 2026 betreten.",
        "en",
        "The landlord must not enter the flat on 3 May 2026.",
    ),
    ("de", "Frau Lang darf 500 EUR ausgeben.", "en", "Ms Lang must not spend more than 500 EUR."),
    ("en", "Acme delivered 300 pumps to Globex.", "de", "Globex lieferte 300 Pumpen an Acme."),
]


@pytest.mark.parametrize(("language", "text", "spoken", "said"), NOT_SURE)
def test_one_common_verb_does_not_support_another_object_or_other_roles(
    language: str, text: str, spoken: str, said: str
) -> None:
    assert judge(text, said, language, spoken) == "partial"


def test_a_passive_says_the_same_in_another_language() -> None:
    assert judge("Globex wurde 2019 von Acme gekauft.", "Acme bought Globex in 2019.", "de", "en") == "supported"


@pytest.mark.parametrize("answer", ["Ja.", "Nein."])
def test_a_bare_yes_or_no_supports_nothing_where_only_names_agree(answer: str) -> None:
    said = passage("Anna Berg painted a picture in Linz in 1924.")
    asked = "Malte Anna Berg 1924 in Linz ein Bild?"
    sentence, _ = check_sentence(answer, (1,), [said], question=asked, language="de")
    assert sentence.verdict == ("partial" if answer == "Ja." else "unsupported")


def test_most_pairs_that_no_rule_was_made_for_are_judged_rightly() -> None:
    """They are read by nobody who changes a rule: their share says how the rules do on what comes next."""
    refused = [judge(text, said, language, spoken) != "supported" for language, text, spoken, said in UNSEEN_FALSE]
    kept = [judge(text, said, language, spoken) in KEPT_VERDICTS for language, text, spoken, said in UNSEEN_TRUE]
    assert sum(refused) >= 35, f"{sum(refused)} of {len(refused)}"
    assert sum(kept) >= 32, f"{sum(kept)} of {len(kept)}"
