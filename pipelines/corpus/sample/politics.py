"""Stories about politics and pay: election, strike."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story


def election(draw: Draw) -> Story:
    """A mayor is elected, or keeps the office, or there must be a second round."""
    winner = draw.person()
    loser = draw.person()
    third = draw.person()
    voter = draw.person()
    town = draw.town()
    share = draw.between(51, 64)
    votes = f"{share} per cent"
    turnout = draw.percent(30, 49)
    old_turnout = draw.percent(65, 80)
    promise = draw.one(
        [
            "free buses",
            "cheaper homes",
            "a new hospital wing",
            "more police",
            "cleaner beaches",
            "smaller classes",
            "a tram line",
        ]
    )
    other = f"{100 - share - draw.between(2, 9)} per cent"
    ending = draw.below(3)
    if ending == 0:
        outcome = [
            (
                f"{winner} takes over from {loser}, "
                f"who had held the post for {draw.count(10, 24)} years."
            ),
            (
                f"For {loser}, the mayor until now, it is the end; "
                f"{winner} moves into the town hall."
            ),
        ]
        tally = [
            f"The challenger won {votes} of the votes in {town}, the mayor {other}.",
            (
                f"Figures for {town} give the challenger {votes} "
                f"and the old mayor {other}."
            ),
        ]
        highlights = (
            (
                f"Challenger {winner} has ousted {loser} "
                f"as mayor of {town} with {votes} of the vote."
            ),
            f"The new mayor has promised the people {promise}.",
        )
    elif ending == 1:
        outcome = [
            (
                f"{winner} stays in the town hall and the challenger, "
                f"{loser}, went home early."
            ),
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
            (
                f"Neither {winner} nor {loser} reached half of the votes, "
                "so they will meet again in a second round."
            ),
            (
                f"A second round between {winner} and {loser} must decide, "
                "since nobody reached half of the votes."
            ),
        ]
        tally = [
            f"In {town} only {turnout} of those who may vote went to the polls.",
            f"The turnout in {town} was {turnout}.",
        ]
        highlights = (
            (
                f"{town} must vote again after {winner} "
                f"and {loser} both fell short of half."
            ),
            f"Turnout in the race for mayor was {turnout}.",
        )
    return Story(
        openings=[
            (
                "The lights in the town hall burned long "
                f"after {draw.hour()} as the last boxes were emptied."
            ),
            (
                f"It rained all {draw.day()}, "
                "and still there were queues outside the polling stations."
            ),
            (
                f"{voter}, {draw.count(80, 99)}, "
                f"has voted in every election since {draw.year()} and did so again."
            ),
            (
                "Bands played, leaflets flew "
                "and the race for mayor ended as noisily as it had begun."
            ),
        ],
        leads=[
            (
                f"The vote for mayor of {town} has been counted, "
                f"and {loser} was among the first to comment."
            ),
            (
                f"Results from {town}, where {winner}, "
                f"{loser} and {third} wanted to be mayor, came in during the night."
            ),
            (
                f"The race between {winner} and {loser} kept {town} awake, "
                "the radio reported."
            ),
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
            (
                f"In {draw.town()}, "
                f"{draw.person()} was chosen with {draw.percent(51, 64)} of the votes."
            ),
            f"Four years ago {old_turnout} of the people took part.",
            (
                f"Posters on {draw.street()} had been torn down, "
                f"and {third} complained to the police."
            ),
            (
                f"The town has {draw.count(9000, 240000)} people "
                f"and a debt of {draw.millions(2, 60)}."
            ),
            (
                f'"I only want the holes in the road filled," said {draw.person()}, '
                "who sells flowers."
            ),
        ],
        endings=[
            f"The council will meet on {draw.date()}.",
            "The count was watched by observers from both camps.",
            f"Official figures will be published on {draw.date()}.",
        ],
        highlights=highlights,
    )


def strike(draw: Draw) -> Story:
    """A transport strike begins or is called off."""
    town = draw.town()
    union_head = draw.person()
    manager = draw.person()
    rider = draw.person()
    workers = draw.count(240, 9800)
    riders = draw.count(12000, 310000)
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
    rise = draw.percent(3, 14)
    offer = draw.percent(1, 9)
    past = draw.percent(1, 14)
    day = draw.day()
    if draw.below(2):
        outcome = [
            f"The walkout began on {day} after talks broke down.",
            f"Talks collapsed at {draw.hour()} and pickets went up on {day}.",
        ]
        pay = [
            f"The union is asking for a rise of {rise}, said its leader, {union_head}.",
            (
                f'"A rise of {rise} is fair '
                f'and we will not settle for less," said union leader {union_head}.'
            ),
        ]
        highlights = (
            f"{workers} {job} in {town} have stopped work in a row over pay.",
            f"Union leader {union_head} demands a rise of {rise}.",
        )
    else:
        outcome = [
            (
                f"The walkout planned for {day} has been called off "
                "after a night of talks."
            ),
            (
                f"There will be no walkout on {day}: "
                f"both sides shook hands at {draw.hour()}."
            ),
        ]
        pay = [
            f"Under the deal wages go up by {rise}, said union leader {union_head}.",
            (
                f'"We got {rise} and that is a good deal," said {union_head}, '
                "the leader of the union."
            ),
        ]
        highlights = (
            f"A strike by {job} in {town} has been averted at the last minute.",
            f"The {workers} staff will get {rise} more pay.",
        )
    return Story(
        openings=[
            "Commuters had been told to make other plans for the week.",
            (
                f"For {rider}, who needs two hours to get to work, "
                "it was a long night of waiting for news."
            ),
            (
                "Taxi firms had doubled their shifts "
                "and bicycle shops were doing good business."
            ),
            (
                f"After {draw.small()} weeks of argument the dispute "
                "over wages has taken another turn."
            ),
        ],
        leads=[
            (
                f"The row over the pay of {job} in {town} "
                f"has reached a turning point, the radio reported on {day}."
            ),
            (
                f"Travellers in {town} learned on {day} what will become "
                f"of the strike by {job}, about which there had been much talk."
            ),
            (
                f"News about the {job} in {town} came late at night, "
                f"and manager {manager} looked tired."
            ),
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
            (
                f"A similar dispute in {draw.year()} lasted {draw.small()} weeks "
                f"and involved {draw.count(240, 9800)} workers."
            ),
            f"Shops on {draw.street()} feared for their trade.",
        ],
        endings=[
            f"The two sides will meet again on {draw.date()}.",
            "The ministry of transport did not want to comment.",
            f"Tickets already bought can be used until {draw.date()}.",
        ],
        highlights=highlights,
    )
