"""Stories about public services: bridge, school."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story


def bridge(draw: Draw) -> Story:
    """A bridge is opened, or its opening is put off."""
    town = draw.town()
    other_town = draw.town()
    engineer = draw.person()
    mayor = draw.person()
    driver = draw.person()
    length = draw.count(180, 3900)
    old_length = draw.count(60, 170)
    cost = draw.millions(12, 300)
    first_cost = draw.millions(2, 11)
    river = draw.last_name()
    minutes = draw.count(12, 55)
    day = draw.day()
    date = draw.date()
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
            (
                f'"We found {flaw} and safety comes first," said {engineer}, '
                "the chief engineer."
            ),
        ]
        highlights = (
            (
                f"The opening of a {cost} bridge across the {river} "
                f"in {town} is delayed to {date}."
            ),
            f"Engineer {engineer} cites {flaw}.",
        )
    return Story(
        openings=[
            (
                "For longer than most people can remember, "
                f"those who wanted to cross the {river} had to take the ferry."
            ),
            (
                "Flags were hung from lamp posts "
                f"and a stage was built on the bank of the {river}."
            ),
            (
                f"{driver} drives a bakery van "
                f"and spends {draw.small()} hours a day in traffic."
            ),
            "Plans for it were drawn, lost, found and drawn again.",
        ],
        leads=[
            (
                f"The bridge over the {river} in {town} is in the news again, "
                f"as Mayor {mayor} had promised."
            ),
            (
                f"There is news about the bridge across the {river}, "
                f"for which people in {town} and {other_town} have waited so long."
            ),
            (
                f"Mayor {mayor} invited reporters to the new bridge "
                f"in {town} on {day} and spoke for an hour."
            ),
        ],
        facts=[
            outcome,
            detail,
            [
                f"The bridge over the {river} in {town} is {length} metres long.",
                (
                    f"With {length} metres the {river} bridge "
                    f"in {town} is the longest in the region."
                ),
            ],
            [
                f"The final bill came to {cost}.",
                f"Taxpayers have paid {cost} for it.",
                f"In the end it cost {cost}.",
            ],
        ],
        asides=[
            (
                f"When work began in {draw.town()} on the steel parts, "
                f"the price was put at {first_cost}."
            ),
            f"The old bridge, {old_length} metres long, was built in {draw.year()}.",
            f"Up to {draw.count(4000, 70000)} cars a day are expected.",
            (
                f'"My grandfather talked about this bridge," said {draw.person()}, '
                f"{draw.count(22, 79)}."
            ),
            (
                f"The firm {draw.company('Steel')} employed "
                f"{draw.count(90, 900)} people on the site."
            ),
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
    town = draw.town()
    bus_town = draw.town()
    head = draw.person()
    parent = draw.person()
    official = draw.person()
    pupils = draw.count(18, 140)
    names = draw.count(700, 24000)
    years = draw.count(41, 190)
    votes = draw.count(11, 30)
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
            (
                f"A gift of {gift} from {donor} "
                f"has saved the village school in {town} from closing."
            ),
            f"Its {pupils} pupils can stay, says head {head}.",
        )
    else:
        outcome = [
            f"It must close in summer, and the children will be taught in {bus_town}.",
            (
                "Lessons will end for good in summer "
                f"and buses will take the children to {bus_town}."
            ),
        ]
        highlights = (
            (
                f"The village school in {town} "
                f"will shut despite {names} signatures against the plan."
            ),
            f"Its {pupils} pupils move to {bus_town}.",
        )
    return Story(
        openings=[
            (
                "Paper stars still hang in the windows "
                "and somebody is practising the recorder."
            ),
            (
                f"Parents had gathered in the gym by {draw.hour()} "
                f"on {draw.day()} to hear the decision."
            ),
            (
                f"For {parent}, whose three children walk there every morning, "
                "it was a sleepless week."
            ),
            (
                "Small schools all "
                "over the county have been looking anxiously at their budgets."
            ),
        ],
        leads=[
            (
                f"The future of the village school in {town} has been decided, "
                f"council officer {official} said."
            ),
            (
                f"The council has spoken about the school in {town}, "
                f"and {parent} was one of the first to hear."
            ),
            (
                f"There is a decision about the school in {town}, "
                f"after months in which {bus_town} was talked about as well."
            ),
        ],
        facts=[
            outcome,
            [
                f"The village school in {town} has {pupils} pupils.",
                f"Only {pupils} pupils go to the school in {town}.",
                (
                    f"With {pupils} pupils the school "
                    f"in {town} is one of the smallest around."
                ),
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
            (
                f"In {draw.town()} a school "
                f"with {draw.count(18, 140)} pupils was shut in {draw.year()}."
            ),
            (
                f"Council officer {official} "
                f"said a place costs {draw.thousands(4, 30)} a year."
            ),
            (
                "The council had voted on it before, "
                f"with {votes} votes against {draw.count(2, 10)}."
            ),
            f"The building is {years} years old and its roof leaks.",
            (
                '"Where children learn, '
                f'a village lives," said {parent}, {draw.count(24, 49)}.'
            ),
        ],
        endings=[
            f"A summer party is planned for {draw.date()}.",
            "The county did not answer questions.",
            f"A meeting for parents will be held at {draw.hour()} next week.",
        ],
        highlights=highlights,
    )
