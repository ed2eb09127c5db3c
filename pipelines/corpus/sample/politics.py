"""Stories about public affairs: election, bridge, school, strike."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story


def election(draw: Draw) -> Story:
    """A mayor is elected, or keeps the office, or there must be a second round."""
    winner, loser, third, voter, town = (
        draw.person(),
        draw.person(),
        draw.person(),
        draw.person(),
        draw.town(),
    )
    share = draw.between(51, 64)
    votes, turnout, old_turnout, promise = (
        f"{share} per cent",
        draw.percent(30, 49),
        draw.percent(65, 80),
        draw.one(
            [
                "free buses",
                "cheaper homes",
                "a new hospital wing",
                "more police",
                "cleaner beaches",
                "smaller classes",
                "a tram line",
            ]
        ),
    )
    other = f"{100 - share - draw.between(2, 9)} per cent"
    ending = draw.below(3)
    if ending == 0:
        outcome = [
            f"{winner} takes over from {loser}, who had held the post for {draw.count(10, 24)} years.",
            f"For {loser}, the mayor until now, it is the end; {winner} moves into the town hall.",
        ]
        tally = [
            f"The challenger won {votes} of the votes in {town}, the mayor {other}.",
            f"Figures for {town} give the challenger {votes} and the old mayor {other}.",
        ]
        highlights = (
            f"Challenger {winner} has ousted {loser} as mayor of {town} with {votes} of the vote.",
            f"The new mayor has promised the people {promise}.",
        )
    elif ending == 1:
        outcome = [
            f"{winner} stays in the town hall and the challenger, {loser}, went home early.",
            f"{loser} rang {winner}, the mayor, to admit defeat.",
        ]
        tally = [
            f"The mayor won {votes} of the votes in {town}, the challenger {other}.",
            f"Figures for {town} give the mayor {votes} and the challenger {other}.",
        ]
        highlights = (
            f"{winner} remains mayor of {town} after winning {votes} of the vote.",
            f"The mayor has promised the people {promise}.",
        )
    else:
        outcome = [
            f"Neither {winner} nor {loser} reached half of the votes, so they will meet again in a second round.",
            f"A second round between {winner} and {loser} must decide, since nobody reached half of the votes.",
        ]
        tally = [
            f"In {town} only {turnout} of those who may vote went to the polls.",
            f"The turnout in {town} was {turnout}.",
        ]
        highlights = (
            f"{town} must vote again after {winner} and {loser} both fell short of half.",
            f"Turnout in the race for mayor was {turnout}.",
        )
    return Story(
        openings=[
            f"The lights in the town hall burned long after {draw.hour()} as the last boxes were emptied.",
            f"It rained all {draw.day()}, and still there were queues outside the polling stations.",
            f"{voter}, {draw.count(80, 99)}, has voted in every election since {draw.year()} and did so again.",
            "Bands played, leaflets flew and the race for mayor ended as noisily as it had begun.",
        ],
        leads=[
            f"The vote for mayor of {town} has been counted, and {loser} was among the first to comment.",
            f"Results from {town}, where {winner}, {loser} and {third} wanted to be mayor, came in during the night.",
            f"The race between {winner} and {loser} kept {town} awake, the radio reported.",
        ],
        facts=[
            outcome,
            tally,
            [
                f"{winner} had campaigned for {promise}.",
                f"{winner} told a crowd that there would be {promise}.",
                f'"We will have {promise}," {winner} said during the campaign.',
            ],
        ],
        asides=[
            f"A third candidate, {third}, came in with {draw.percent(1, 9)}.",
            f"In {draw.town()}, {draw.person()} was chosen with {draw.percent(51, 64)} of the votes.",
            f"Four years ago {old_turnout} of the people took part.",
            f"Posters on {draw.street()} had been torn down, and {third} complained to the police.",
            f"The town has {draw.count(9000, 240000)} people and a debt of {draw.millions(2, 60)}.",
            f'"I only want the holes in the road filled," said {draw.person()}, who sells flowers.',
        ],
        endings=[
            f"The council will meet on {draw.date()}.",
            "The count was watched by observers from both camps.",
            f"Official figures will be published on {draw.date()}.",
        ],
        highlights=highlights,
    )


def bridge(draw: Draw) -> Story:
    """A bridge is opened, or its opening is put off."""
    town, other_town, engineer, mayor, driver = (
        draw.town(),
        draw.town(),
        draw.person(),
        draw.person(),
        draw.person(),
    )
    length, old_length, cost, first_cost = (
        draw.count(180, 3900),
        draw.count(60, 170),
        draw.millions(12, 300),
        draw.millions(2, 11),
    )
    river, minutes, day, date = (
        draw.last_name(),
        draw.count(12, 55),
        draw.day(),
        draw.date(),
    )
    flaw = draw.one(
        [
            "rust in the cables",
            "cracks in a pillar",
            "loose bolts",
            "soft ground",
            "missing railings",
            "a dispute over lighting",
        ]
    )
    if draw.below(2):
        outcome = [
            f"Hundreds walked across on {day} before the first cars were let on.",
            f"Mayor {mayor} cut the ribbon on {day} and the first lorries rolled over.",
        ]
        detail = [
            f"Drivers will save {minutes} minutes on the way to {other_town}.",
            f"The way to {other_town} will be {minutes} minutes shorter.",
        ]
        highlights = (
            f"{town} has opened a bridge over the {river} that cost {cost}.",
            f"It makes the trip to {other_town} {minutes} minutes quicker.",
        )
    else:
        outcome = [
            f"The opening has been put off until {date}.",
            f"Traffic will now have to wait until {date}.",
        ]
        detail = [
            f"Inspectors had found {flaw}, said the chief engineer, {engineer}.",
            f'"We found {flaw} and safety comes first," said {engineer}, the chief engineer.',
        ]
        highlights = (
            f"The opening of a {cost} bridge across the {river} in {town} is delayed to {date}.",
            f"Engineer {engineer} cites {flaw}.",
        )
    return Story(
        openings=[
            f"For longer than most people can remember, those who wanted to cross the {river} had to take the ferry.",
            f"Flags were hung from lamp posts and a stage was built on the bank of the {river}.",
            f"{driver} drives a bakery van and spends {draw.small()} hours a day in traffic.",
            "Plans for it were drawn, lost, found and drawn again.",
        ],
        leads=[
            f"The bridge over the {river} in {town} is in the news again, as Mayor {mayor} had promised.",
            f"There is news about the bridge across the {river}, for which people in {town} and {other_town} have waited so long.",
            f"Mayor {mayor} invited reporters to the new bridge in {town} on {day} and spoke for an hour.",
        ],
        facts=[
            outcome,
            detail,
            [
                f"The bridge over the {river} in {town} is {length} metres long.",
                f"With {length} metres the {river} bridge in {town} is the longest in the region.",
            ],
            [
                f"The final bill came to {cost}.",
                f"Taxpayers have paid {cost} for it.",
                f"In the end it cost {cost}.",
            ],
        ],
        asides=[
            f"When work began in {draw.town()} on the steel parts, the price was put at {first_cost}.",
            f"The old bridge, {old_length} metres long, was built in {draw.year()}.",
            f"Up to {draw.count(4000, 70000)} cars a day are expected.",
            f'"My grandfather talked about this bridge," said {draw.person()}, {draw.count(22, 79)}.',
            f"The firm {draw.company('Steel')} employed {draw.count(90, 900)} people on the site.",
        ],
        endings=[
            f"The ferry will make its last trip on {draw.date()}.",
            "Cyclists have a lane of their own on the southern side.",
            f"Speed will be limited to {draw.count(41, 79)} kilometres an hour.",
        ],
        highlights=highlights,
    )


def school(draw: Draw) -> Story:
    """A small school is saved or will close."""
    town, bus_town, head, parent, official = (
        draw.town(),
        draw.town(),
        draw.person(),
        draw.person(),
        draw.person(),
    )
    pupils, names, years, votes = (
        draw.count(18, 140),
        draw.count(700, 24000),
        draw.count(41, 190),
        draw.count(11, 30),
    )
    donor = draw.one(
        [
            "a retired dentist",
            "a local brewery",
            "a lottery winner",
            "a former pupil",
            "a cheese maker",
            "an unknown donor",
        ]
    )
    gift = draw.thousands(60, 900)
    if draw.below(2):
        outcome = [
            f"It may stay open, thanks to {gift} from {donor}.",
            f"The bell will go on ringing, because {donor} has given {gift}.",
        ]
        highlights = (
            f"A gift of {gift} from {donor} has saved the village school in {town} from closing.",
            f"Its {pupils} pupils can stay, says head {head}.",
        )
    else:
        outcome = [
            f"It must close in summer, and the children will be taught in {bus_town}.",
            f"Lessons will end for good in summer and buses will take the children to {bus_town}.",
        ]
        highlights = (
            f"The village school in {town} will shut despite {names} signatures against the plan.",
            f"Its {pupils} pupils move to {bus_town}.",
        )
    return Story(
        openings=[
            "Paper stars still hang in the windows and somebody is practising the recorder.",
            f"Parents had gathered in the gym by {draw.hour()} on {draw.day()} to hear the decision.",
            f"For {parent}, whose three children walk there every morning, it was a sleepless week.",
            "Small schools all over the county have been looking anxiously at their budgets.",
        ],
        leads=[
            f"The future of the village school in {town} has been decided, council officer {official} said.",
            f"The council has spoken about the school in {town}, and {parent} was one of the first to hear.",
            f"There is a decision about the school in {town}, after months in which {bus_town} was talked about as well.",
        ],
        facts=[
            outcome,
            [
                f"The village school in {town} has {pupils} pupils.",
                f"Only {pupils} pupils go to the school in {town}.",
                f"With {pupils} pupils the school in {town} is one of the smallest around.",
            ],
            [
                f"Protesters had collected {names} signatures.",
                f"A list with {names} signatures was handed to the council.",
            ],
            [
                f'"I did not sleep at all," said the head, {head}.',
                f"The head, {head}, thanked all who had helped.",
            ],
        ],
        asides=[
            f"In {draw.town()} a school with {draw.count(18, 140)} pupils was shut in {draw.year()}.",
            f"Council officer {official} said a place costs {draw.thousands(4, 30)} a year.",
            f"The council had voted on it before, with {votes} votes against {draw.count(2, 10)}.",
            f"The building is {years} years old and its roof leaks.",
            f'"Where children learn, a village lives," said {parent}, {draw.count(24, 49)}.',
        ],
        endings=[
            f"A summer party is planned for {draw.date()}.",
            "The county did not answer questions.",
            f"A meeting for parents will be held at {draw.hour()} next week.",
        ],
        highlights=highlights,
    )


def strike(draw: Draw) -> Story:
    """A transport strike begins or is called off."""
    town, union_head, manager, rider = (
        draw.town(),
        draw.person(),
        draw.person(),
        draw.person(),
    )
    workers, riders = draw.count(240, 9800), draw.count(12000, 310000)
    job = draw.one(
        [
            "bus drivers",
            "train drivers",
            "ferry crews",
            "airport porters",
            "tram drivers",
            "signal workers",
        ]
    )
    rise, offer, past = draw.percent(3, 14), draw.percent(1, 9), draw.percent(1, 14)
    day = draw.day()
    if draw.below(2):
        outcome = [
            f"The walkout began on {day} after talks broke down.",
            f"Talks collapsed at {draw.hour()} and pickets went up on {day}.",
        ]
        pay = [
            f"The union is asking for a rise of {rise}, said its leader, {union_head}.",
            f'"A rise of {rise} is fair and we will not settle for less," said union leader {union_head}.',
        ]
        highlights = (
            f"{workers} {job} in {town} have stopped work in a row over pay.",
            f"Union leader {union_head} demands a rise of {rise}.",
        )
    else:
        outcome = [
            f"The walkout planned for {day} has been called off after a night of talks.",
            f"There will be no walkout on {day}: both sides shook hands at {draw.hour()}.",
        ]
        pay = [
            f"Under the deal wages go up by {rise}, said union leader {union_head}.",
            f'"We got {rise} and that is a good deal," said {union_head}, the leader of the union.',
        ]
        highlights = (
            f"A strike by {job} in {town} has been averted at the last minute.",
            f"The {workers} staff will get {rise} more pay.",
        )
    return Story(
        openings=[
            "Commuters had been told to make other plans for the week.",
            f"For {rider}, who needs two hours to get to work, it was a long night of waiting for news.",
            "Taxi firms had doubled their shifts and bicycle shops were doing good business.",
            f"After {draw.small()} weeks of argument the dispute over wages has taken another turn.",
        ],
        leads=[
            f"The row over the pay of {job} in {town} has reached a turning point, the radio reported on {day}.",
            f"Travellers in {town} learned on {day} what will become of the strike by {job}, about which there had been much talk.",
            f"News about the {job} in {town} came late at night, and manager {manager} looked tired.",
        ],
        facts=[
            outcome,
            pay,
            [
                f"The dispute concerns {workers} {job} in {town}.",
                f"In {town} there are {workers} {job}, and nearly all are members.",
                f"Most of the {workers} {job} in {town} had voted for action.",
            ],
        ],
        asides=[
            f"The company had first offered {offer}, manager {manager} said.",
            f"Colleagues in {draw.town()} accepted {past} in {draw.month()}.",
            f'"I only want to get home," said {rider}, {draw.count(19, 78)}.',
            f"About {riders} passengers use the service every day.",
            f"A similar dispute in {draw.year()} lasted {draw.small()} weeks and involved {draw.count(240, 9800)} workers.",
            f"Shops on {draw.street()} feared for their trade.",
        ],
        endings=[
            f"The two sides will meet again on {draw.date()}.",
            "The ministry of transport did not want to comment.",
            f"Tickets already bought can be used until {draw.date()}.",
        ],
        highlights=highlights,
    )
