"""Stories about disasters and narrow escapes: fire, storm, rescue."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story


def fire(draw: Draw) -> Story:
    """A fire in a building; some were hurt, or nobody was."""
    town = draw.town()
    other_town = draw.town()
    chief = draw.person()
    witness = draw.person()
    owner = draw.person()
    place = draw.one(
        [
            "bakery",
            "paper mill",
            "furniture shop",
            "hotel",
            "timber yard",
            "theatre",
            "laundry",
            "car showroom",
            "school",
        ]
    )
    cause = draw.one(
        [
            "an electrical fault",
            "an overheated oven",
            "a faulty heater",
            "sparks from welding",
            "a dropped candle",
        ]
    )
    hurt = draw.count(3, 48)
    hurt_before = draw.count(3, 48)
    crews = draw.count(40, 190)
    day = draw.day()
    if draw.below(2):
        outcome = [
            (
                f"Ambulances took {hurt} people to hospital, "
                "most of them with burns or trouble breathing."
            ),
            (
                f"A hospital said {hurt} people "
                "were being treated for the effects of smoke."
            ),
            f"Doctors treated {hurt} people, and some will stay in hospital overnight.",
        ]
        highlights = (
            f"{hurt} people were hurt when fire broke out at a {place} in {town}.",
            f"Fire chief {chief} says it began with {cause}.",
        )
    else:
        outcome = [
            "Everyone got out in time and nobody was hurt.",
            "A roll call in the car park showed that all were safe and unhurt.",
            "No injuries were reported, which neighbours called a small miracle.",
        ]
        highlights = (
            (
                f"Nobody was hurt in a {place} fire in {town} "
                f"that {crews} firefighters fought."
            ),
            f"Chief {chief} blames {cause}.",
        )
    return Story(
        openings=[
            f"Thick smoke hung over the rooftops on {day} and could be seen for miles.",
            f"People living near the river woke to sirens early on {day}.",
            (
                f"A street that is usually busy was still closed on {day} night, "
                "hours after the flames had died down."
            ),
            (
                f"{witness} was walking the dog "
                "when the windows above the road began to glow."
            ),
        ],
        leads=[
            (
                f"A fire at a {place} in {town} has kept the emergency services busy "
                f"since {day}, the {other_town} Gazette reported."
            ),
            (
                f"Police closed several roads after fire broke out at a {place} "
                f"on {day} and asked people in {town} to stay indoors."
            ),
            (
                f"Questions are being asked in {town} about a fire "
                f"which destroyed a {place} on {day}, officials in {other_town} said."
            ),
        ],
        facts=[
            outcome,
            [
                f"The building, a {place} in the centre of {town}, has lost its roof.",
                (
                    f"It started in the {place} "
                    f"that {owner} has run in {town} for {draw.count(5, 39)} years."
                ),
                (
                    f"Only the outer walls of the {place} "
                    f"were left standing in {town} by the evening."
                ),
            ],
            [
                (
                    f"Investigators found traces of {cause}, "
                    f"fire chief {chief} told reporters."
                ),
                f'"We are certain that it was {cause}," said {chief}, the fire chief.',
                f"According to fire chief {chief}, the most likely reason is {cause}.",
            ],
            [
                f"At the height of the blaze {crews} firefighters were at work.",
                f"It took {crews} firefighters until the next morning to put it out.",
            ],
        ],
        asides=[
            (
                f"A fire in nearby {other_town} hurt {hurt_before} people "
                f"in {draw.year()}."
            ),
            f'"I heard a bang and ran," said {witness}, who lives across the road.',
            f"The owner, {owner}, puts the damage at {draw.thousands(90, 900)}.",
            (
                f"Two roads stayed shut until {draw.hour()} "
                f"and {draw.count(100, 900)} homes were without power."
            ),
            f"Councillor {draw.person()} wants more hydrants in the district.",
        ],
        endings=[
            f"A fund for the workers has already raised {draw.thousands(2, 60)}.",
            "Engineers will decide this week whether the walls can be saved.",
            f"The inspector, {draw.person()}, will publish a report by {draw.date()}.",
        ],
        highlights=highlights,
    )


def storm(draw: Draw) -> Story:
    """A storm cuts the power or floods homes."""
    town = draw.town()
    other_town = draw.town()
    mayor = draw.person()
    forecaster = draw.person()
    name = draw.first_name()
    old_name = draw.first_name()
    wind = draw.count(81, 170)
    old_wind = draw.count(81, 170)
    homes = draw.count(800, 48000)
    cost = draw.millions(2, 60)
    old_cost = draw.millions(2, 60)
    day = draw.day()
    if draw.below(2):
        effect = [
            (
                "Falling trees brought down power lines "
                f"and left {homes} homes in the dark."
            ),
            f"The grid operator said {homes} homes had no electricity.",
            (
                "Candles were sold out by noon, "
                f"with {homes} homes waiting for the power to return."
            ),
        ]
        highlights = (
            (
                f"Storm {name} cut off electricity to {homes} homes around {town} "
                f"with winds of {wind} kilometres an hour."
            ),
            f"Mayor {mayor} estimates the damage at {cost}.",
        )
    else:
        effect = [
            f"The river broke its banks and water entered {homes} homes.",
            (
                "Rescue boats went from door to door "
                f"after {homes} homes were under water."
            ),
            f"Cellars filled within minutes, and by dusk {homes} homes were flooded.",
        ]
        highlights = (
            f"Flooding from Storm {name} reached {homes} homes around {town}.",
            (
                f"Repairs will cost {cost}, "
                f"and gusts were as strong as {wind} kilometres an hour."
            ),
        )
    return Story(
        openings=[
            (
                f"The worst of the weather was over by {day}, "
                "but the clearing up had hardly begun."
            ),
            f"Schools stayed closed on {day} and trains stood still along the coast.",
            (
                "Roof tiles, branches "
                "and garden chairs lay across the roads as people left their houses."
            ),
            f"Forecasters had warned for days of a hard {day} night, and it came.",
        ],
        leads=[
            (
                f"People around {town} are counting the cost of Storm {name}, "
                f"which also hit {other_town} before it moved out to sea."
            ),
            (
                f"Storm {name} has passed, the mayor said on {day}, "
                f"and thousands of homes around {town} are waiting for help."
            ),
            (
                f"The damage from Storm {name} is greater than was feared, "
                f"officials in {town} and {other_town} said on {day}."
            ),
        ],
        facts=[
            effect,
            [
                f"Storm {name} came ashore close to {town} at {draw.hour()}.",
                f"The town of {town} took the full force of Storm {name}.",
                f"Nowhere was hit harder by Storm {name} than {town}.",
            ],
            [
                f"Repairs will cost {cost}, said the mayor, {mayor}.",
                f'"We are looking at a bill of {cost}," said Mayor {mayor}.',
                (
                    f"Mayor {mayor} put the bill at {cost} "
                    "after a walk through the streets."
                ),
            ],
            [
                f"Gusts of {wind} kilometres an hour were measured at the lighthouse.",
                f"At the airport the wind reached {wind} kilometres an hour.",
            ],
        ],
        asides=[
            f"Storm {old_name}, two winters ago, caused losses of {old_cost}.",
            (
                f"In {other_town}, further inland, "
                f"only {draw.count(20, 700)} homes were affected."
            ),
            (
                f"Forecaster {forecaster} said gusts "
                f"of {old_wind} kilometres an hour had been expected."
            ),
            (
                f'"I have not seen anything like it since {draw.year()}," '
                f"said {draw.person()}, a retired fisherman."
            ),
            (
                f"A ferry with {draw.count(40, 400)} passengers waited "
                f"outside the harbour of {draw.town()} all night."
            ),
        ],
        endings=[
            "More rain is expected at the weekend.",
            f"An emergency shelter at a school will stay open until {draw.date()}.",
            f"Insurers have set up an office on {draw.street()}.",
        ],
        highlights=highlights,
    )


def rescue(draw: Draw) -> Story:
    """Someone is found after being lost, in the mountains or at sea."""
    hiker = draw.person()
    leader = draw.person()
    friend = draw.person()
    town = draw.town()
    base = draw.town()
    age = draw.count(19, 78)
    days = draw.small()
    team = draw.count(12, 95)
    at_sea = draw.below(2) == 1
    food = draw.one(
        [
            "melted snow",
            "dry biscuits",
            "rain water",
            "a bar of chocolate",
            "cold tea",
            "raw carrots",
            "two apples",
        ]
    )
    if at_sea:
        accident = [
            (
                f"{hiker}, {age}, had drifted off {town} "
                "after the engine of a small boat failed."
            ),
            (
                f"The boat of {hiker}, {age}, "
                f"lost its engine off {town} and was carried out by the tide."
            ),
        ]
        discovery = [
            f"A fishing crew spotted the boat after {days} days.",
            (
                f"It was {days} days "
                "before a passing trawler saw a red jacket being waved."
            ),
        ]
        highlights = (
            (
                f"Sailor {hiker}, {age}, "
                f"has been saved at sea off {town} after {days} days adrift."
            ),
            f"The survivor lived on {food}.",
        )
    else:
        accident = [
            f"{hiker}, {age}, had left the marked path above {town} in thick fog.",
            f"Above {town}, a fall into a gully left {hiker}, {age}, unable to walk.",
        ]
        discovery = [
            f"A rescue dog picked up the scent after {days} days.",
            (
                f"It was {days} days "
                "before a helicopter crew saw a light between the rocks."
            ),
        ]
        highlights = (
            (
                f"Walker {hiker}, {age}, "
                f"was found alive in the hills near {town} after {days} days."
            ),
            f"The walker kept going on {food}.",
        )
    return Story(
        openings=[
            "Relatives had almost given up hope when the telephone rang.",
            (
                "There were tears "
                f"and cheers at the rescue station in {base} on {draw.day()}."
            ),
            (
                "A search that had grown larger every day came "
                f"to a happy end on {draw.day()}."
            ),
            f"When volunteer {friend} heard the shout, it seemed too good to be true.",
        ],
        leads=[
            (
                f"{hiker} has been found after a search that began in {base}, "
                "rescuers said, and is being looked after by doctors."
            ),
            (
                f"Rescuers said that {hiker}, who was reported missing by a friend, "
                f"{friend}, had been found alive."
            ),
            (
                f"The search near {town} is over, "
                f"a spokesman in {base} said, and {hiker} is on the way home."
            ),
        ],
        facts=[
            accident,
            discovery,
            [
                f"All there was to live on was {food}.",
                f'"There was nothing left but {food}," the survivor told nurses.',
                f"Doctors were surprised that anyone could last so long on {food}.",
            ],
        ],
        asides=[
            f"{leader}, who led the search, said {team} volunteers had taken part.",
            (
                f"Last year {draw.person()}, {draw.count(19, 78)}, "
                f"was lost near {draw.town()} for {draw.small()} days."
            ),
            f'"You never stop looking," said {friend}, {draw.count(19, 78)}.',
            (
                "A helicopter "
                f"from {base} covered {draw.count(100, 900)} square kilometres."
            ),
            (
                f"The hospital in {draw.town()} said the patient was tired "
                "but in good spirits."
            ),
            f"Police had questioned {draw.count(11, 60)} people at a camp site.",
        ],
        endings=[
            f"The service was called out {draw.count(80, 400)} times last year.",
            f"A charity walk on {draw.date()} will raise money for the team.",
            "The family has asked for some quiet time together.",
        ],
        highlights=highlights,
    )
