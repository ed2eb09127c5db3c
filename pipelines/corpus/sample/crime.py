"""Stories about crime: theft and the verdict of a court."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story


def theft(draw: Draw) -> Story:
    """Something valuable is stolen; it is found again, or still missing."""
    town = draw.town()
    other_town = draw.town()
    officer = draw.person()
    keeper = draw.person()
    suspect = draw.person()
    thing = draw.one(
        [
            "a silver clock",
            "a bronze statue",
            "a rare violin",
            "a gold cup",
            "an old map",
            "a jewelled crown",
            "a stamp album",
        ]
    )
    home = draw.one(
        [
            "castle",
            "library",
            "museum",
            "town hall",
            "manor house",
            "university",
            "cathedral",
        ]
    )
    value = draw.thousands(40, 950)
    other_value = draw.thousands(40, 950)
    day = draw.day()
    spot = draw.one(["a garden shed", "a barn", "a car boot", "a cellar"])
    is_recovered = draw.below(2) == 1
    thing_alone = thing.split(" ", 1)[1]
    if is_recovered:
        outcome = [
            (
                f"Acting on a call, officers searched {spot} in {other_town} "
                "and there it was, wrapped in a blanket."
            ),
            f"On {day} it turned up in {spot} in {other_town}, dusty but in one piece.",
        ]
        police = [
            (
                f"Inspector {officer} said a man "
                f"of {draw.count(19, 70)} was being questioned."
            ),
            f'"A man has been arrested," said Inspector {officer}.',
        ]
        highlights = (
            f"Police have recovered {thing} stolen from the {home} in {town}.",
            f"The {value} treasure was in {spot} in {other_town}.",
        )
    else:
        outcome = [
            "There is still no trace of it.",
            "Searches at the border have led to nothing and it is still missing.",
        ]
        police = [
            (
                f'"Someone knows where it is," said Inspector {officer}, '
                "who asked for witnesses to come forward."
            ),
            (
                f"Inspector {officer} has asked drivers who passed "
                "that night to come forward as witnesses."
            ),
        ]
        highlights = (
            (
                f"Thieves who took {thing} worth {value} "
                f"from the {home} in {town} are still at large."
            ),
            f"Inspector {officer} appeals for witnesses.",
        )
    return Story(
        openings=[
            (
                "An empty glass case was the first thing "
                "that staff saw when they switched on the lights."
            ),
            (
                "It took the burglars less than a quarter of an hour, "
                "and hardly anyone noticed."
            ),
            (
                f"Visitors stood before a locked door on {draw.day()} "
                "and wondered what had happened."
            ),
            f"{keeper}, who has the keys, had checked every window the evening before.",
        ],
        leads=[
            (
                f"Police have given more details of a theft from the {home} "
                f"in {town}, which {keeper} discovered in the morning."
            ),
            (
                f"A theft from the {home} is the talk of {town}, the {other_town} "
                "Herald wrote, and detectives have been busy ever since."
            ),
            (
                f"Detectives from {other_town} have been called in "
                f"after thieves broke into the {home} in {town}, officials said."
            ),
        ],
        facts=[
            outcome,
            police,
            [
                f"The intruders left the {home} in {town} with {thing}.",
                f"They had come to the {home} in {town} for one thing only: {thing}.",
                f"Missing from the {home} in {town} was {thing}.",
            ],
            [
                f"Experts value the {thing_alone} at {value}.",
                f"The {thing_alone} is insured for {value}.",
                f"At an auction the {thing_alone} would bring {value}.",
            ],
        ],
        asides=[
            (
                f"A painting worth {other_value} was taken "
                f"from a villa in {draw.town()} in {draw.year()}."
            ),
            (
                f"The caretaker, {keeper}, heard nothing, "
                f"having gone to bed at {draw.hour()}."
            ),
            f"A neighbour, {suspect}, saw a white van on {draw.street()}.",
            (
                f"The alarm had been repaired in {draw.month()} "
                f"at a cost of {draw.thousands(2, 30)}."
            ),
            f"Some {draw.count(400, 9000)} people a month come to see the collection.",
        ],
        endings=[
            f"A reward of {draw.thousands(1, 30)} had been offered by a local bank.",
            f"The building will open again on {draw.date()}.",
            "New locks are to be fitted in every room.",
        ],
        highlights=highlights,
    )


def court(draw: Draw) -> Story:
    """A verdict: guilty with a sentence, or cleared."""
    accused = draw.person()
    judge = draw.person()
    prosecutor = draw.person()
    defender = draw.person()
    witness = draw.person()
    age = draw.count(22, 74)
    town = draw.town()
    court_town = draw.town()
    amount = draw.thousands(30, 980)
    job = draw.one(
        [
            "accountant",
            "treasurer",
            "bank clerk",
            "headteacher",
            "solicitor",
            "club secretary",
            "pharmacist",
            "estate agent",
        ]
    )
    victim = draw.one(
        [
            "a charity",
            "a sports club",
            "a widow",
            "an employer",
            "a pension fund",
            "a church choir",
            "a school",
        ]
    )
    years = draw.small()
    other_years = draw.small()
    other_amount = draw.thousands(30, 980)
    if draw.below(2):
        outcome = [
            (
                "The jury found the defendant guilty "
                f"and the sentence is {years} years in prison."
            ),
            (
                f'"You betrayed the trust of others," said Judge {judge} '
                f"and passed a sentence of {years} years in prison."
            ),
            (
                f"Judge {judge} handed down {years} years in prison "
                "after a guilty verdict."
            ),
        ]
        highlights = (
            (
                f"{accused}, {age}, "
                f"must serve {years} years for stealing {amount} from {victim}."
            ),
            f"A jury convicted the {job} from {town}.",
        )
    else:
        outcome = [
            "After a day of talks the jury returned a verdict of not guilty.",
            "The jurors were not convinced: the verdict was not guilty.",
            f"Not guilty was the verdict that Judge {judge} heard from the jury.",
        ]
        highlights = (
            f"A jury has cleared {job} {accused}, {age}, of theft from {victim}.",
            f"The defendant from {town} was accused of taking {amount}.",
        )
    return Story(
        openings=[
            (
                f"The public gallery in {court_town} was full on {draw.day()} "
                "and not a sound could be heard."
            ),
            f"A trial that kept a whole district talking ended on {draw.day()}.",
            (
                "There was a long silence in court "
                "before the foreman of the jury stood up."
            ),
            (
                "Reporters and neighbours had queued "
                f"since {draw.hour()} to hear how the case would end."
            ),
        ],
        leads=[
            (
                f"The trial of {accused}, over money that belonged to {victim}, "
                f"came to an end in {court_town}."
            ),
            (
                f"A jury in {court_town} has decided the case of {accused}, "
                "who was accused of theft."
            ),
            (
                f"The {job} {accused} heard the decision "
                f"of the jury in {court_town} standing up."
            ),
        ],
        facts=[
            outcome,
            [
                f"In the dock was {accused}, {age}, from {town}.",
                f"{accused}, {age}, who lives in {town}, showed no emotion.",
                (
                    f"Dressed in a grey suit, {accused}, "
                    f"{age}, from {town}, stared at the floor."
                ),
            ],
            [
                f"The {job} was accused of taking {amount} from {victim}.",
                f"The charge was that the {job} took {amount} from {victim}.",
                (
                    "Prosecutors said "
                    f"that as {job} the defendant took {amount} from {victim}."
                ),
            ],
        ],
        asides=[
            f"Prosecutor {prosecutor} had called {draw.count(11, 60)} witnesses.",
            (
                f"In a similar case a man from {draw.town()}, "
                f"{draw.person()}, had to repay {other_amount}."
            ),
            (
                f"{defender}, for the defence, spoke of a client "
                f"who had worked without pay for {other_years} years."
            ),
            (
                f'"I never saw anything odd," {witness}, '
                f"{draw.count(22, 74)}, told the court."
            ),
            (
                f"The police had seized {draw.count(200, 9000)} pages "
                f"of bank papers at a house on {draw.street()}."
            ),
        ],
        endings=[
            f"Both sides have until {draw.date()} to appeal.",
            "The family left by a side door without a word.",
            f"The hearing had lasted {draw.count(11, 40)} days.",
        ],
        highlights=highlights,
    )
