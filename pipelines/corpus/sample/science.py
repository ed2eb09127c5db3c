"""Stories about nature and science: study and zoo."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story


def study(draw: Draw) -> Story:
    """A study finds that a habit helps, or that it makes no difference."""
    habit = draw.one(
        [
            "napping after lunch",
            "walking to work",
            "taking cold showers",
            "singing in a choir",
            "eating walnuts",
            "working in the garden",
            "learning chess",
            "drinking black coffee",
        ]
    )
    aim = draw.one(
        [
            "memory",
            "sleep",
            "blood pressure",
            "balance",
            "mood",
            "hearing",
            "appetite",
            "concentration",
        ]
    )
    town = draw.town()
    other_town = draw.town()
    leader = draw.person()
    critic = draw.person()
    helper = draw.person()
    people = draw.count(240, 28000)
    other_people = draw.count(40, 230)
    gain = draw.percent(6, 42)
    months = draw.small()
    if draw.below(2):
        finding = [
            (
                "Compared with the others, "
                f"{aim} was {gain} better among those with the habit."
            ),
            f"The measured gain in {aim} was {gain}.",
        ]
        subject = [
            f"The question was what {habit} does for the body.",
            f"They looked at the effects of {habit}.",
        ]
        highlights = (
            f"{leader} and a team in {town} say that {habit} can improve {aim}.",
            f"They saw a gain of {gain} in a study of {people} people.",
        )
    else:
        finding = [
            f"For {aim} there was no difference at all between the groups.",
            f"No effect on {aim} could be found.",
        ]
        subject = [
            f"Many people believe in the power of {habit}.",
            f"Half of the group tried {habit} and half did not.",
        ]
        highlights = (
            f"Scientists in {town} found no benefit of {habit} for {aim}.",
            f"The team of {leader} observed {people} people.",
        )
    return Story(
        openings=[
            (
                "It sounds like the advice of a grandmother, "
                "and now it has been put to the test."
            ),
            f"Researchers rarely get as much post as they did after {draw.day()}.",
            f"Volunteer {helper} wore a small sensor on the wrist day and night.",
            "Magazines print such tips every week, but proof is harder to come by.",
        ],
        leads=[
            (
                f"A study on {habit} and {aim} has caused some debate, "
                f"also at the university in {other_town}."
            ),
            (
                f"Scientists in {town} have looked into {habit}, "
                f"a matter on which {critic} has written a book."
            ),
            (
                f"Can {habit} change {aim}? "
                f"A study from {town} has an answer, and {critic} has doubts."
            ),
        ],
        facts=[
            finding,
            subject,
            [
                (
                    "The team at the University "
                    f"of {town} followed {people} people for {months} months."
                ),
                (
                    f"For {months} months {people} people reported "
                    f"to the University of {town}."
                ),
                (
                    f"At the University of {town}, "
                    f"{people} people were examined over {months} months."
                ),
            ],
            [
                f'"The data are clear," said Professor {leader}, who led the work.',
                (
                    f"Professor {leader}, who led the work, "
                    "was surprised by how clear the data were."
                ),
            ],
        ],
        asides=[
            (
                f"An earlier trial in {other_town} "
                f"with {other_people} people had pointed the other way."
            ),
            (
                f"{critic} of the University of {other_town}, "
                "who was not involved, urged caution."
            ),
            f"The work was paid for with {draw.millions(2, 19)} from a foundation.",
            (
                f"Those who took part were between {draw.count(18, 39)} "
                f"and {draw.count(60, 89)} years old."
            ),
            f"About {draw.percent(43, 60)} of the group were women.",
            f'"I will go on with it anyway," said {helper}, a volunteer.',
        ],
        endings=[
            "The results appear in a journal this month.",
            f"A larger trial will start on {draw.date()}.",
            f"Results for children are expected by {draw.date()}.",
        ],
        highlights=highlights,
    )


def zoo(draw: Draw) -> Story:
    """An animal is born in a zoo, or one has escaped and been caught."""
    animal, young = draw.one(
        [
            ("giraffe", "calf"),
            ("penguin", "chick"),
            ("red panda", "cub"),
            ("tapir", "calf"),
            ("snow leopard", "cub"),
            ("flamingo", "chick"),
            ("beaver", "kit"),
            ("lynx", "kitten"),
            ("sea lion", "pup"),
        ]
    )
    name = draw.first_name()
    other_name = draw.first_name()
    old_name = draw.first_name()
    town = draw.town()
    keeper = draw.person()
    size = draw.count(21, 98)
    hours = draw.small()
    finder = draw.person()
    place = draw.town()
    spot = draw.one(
        [
            "a swimming pool",
            "a school yard",
            "a bus shelter",
            "a rose garden",
            "a church porch",
            "a car park",
        ]
    )
    if draw.below(2):
        event = [
            f"A {animal} {young} was born in the zoo of {town} and is called {name}.",
            f"The zoo of {town} has a new resident, a {animal} {young} called {name}.",
        ]
        detail = [
            f"It measures {size} centimetres, said keeper {keeper}.",
            f'"It already measures {size} centimetres," keeper {keeper} said.',
        ]
        highlights = (
            f"{town} zoo is celebrating the birth of {name}, a {animal} {young}.",
            f"Keeper {keeper} says the baby measures {size} centimetres.",
        )
    else:
        event = [
            (
                f"{name}, a {animal} from the zoo of {town}, "
                f"was missing for {hours} hours."
            ),
            f"For {hours} hours the zoo of {town} had been without {name}, a {animal}.",
        ]
        detail = [
            f"It was {finder} who saw the runaway in {spot}.",
            f"The runaway was sitting in {spot} when {finder} came by.",
        ]
        highlights = (
            (
                f"{name} the {animal} is back in {town} zoo "
                f"after {hours} hours on the run."
            ),
            f"{finder} discovered the animal in {spot}.",
        )
    return Story(
        openings=[
            f"There was an unusual crowd at the gates on {draw.day()}.",
            (
                "A small pair of eyes looks out of the straw, "
                "and forty telephones are held up."
            ),
            (
                f"Director {draw.person()} had slept for only {draw.small()} hours "
                "and was still smiling."
            ),
            "Some days at work are not like the others, as keepers know.",
        ],
        leads=[
            (
                f"The zoo in {town} has something to celebrate, "
                f"said keeper {keeper}, and not for the first time."
            ),
            (
                f"{name} the {animal} is the star of the {town} zoo this week, "
                f"and keeper {keeper} has little sleep."
            ),
            (
                f"Staff of the zoo in {town} met the press because of {name}, "
                f"and brought {other_name} along too."
            ),
        ],
        facts=[
            event,
            detail,
        ],
        asides=[
            "The vet is content and all is well.",
            f"The zoo expects {draw.count(1200, 9000)} visitors at the weekend.",
            f"Its mother, {other_name}, came from a park in {place} in {draw.year()}.",
            f"Visitors had made {draw.count(300, 9000)} drawings for the animal house.",
            (
                f"Another animal, {old_name}, measures {draw.count(101, 190)} "
                "centimetres and is the oldest in the house."
            ),
            (
                f"A camel was once loose in {draw.town()} for {draw.small()} days, "
                f"recalls {draw.person()}."
            ),
            (
                f"Only {draw.count(900, 9000)} animals "
                "of the species are left in the wild."
            ),
            (
                f"A new house will cost {draw.millions(2, 19)}, "
                f"said Mayor {draw.person()}."
            ),
        ],
        endings=[
            f"The house opens at {draw.hour()} every day.",
            "A web camera shows the stall day and night.",
            f"The zoo was founded in {draw.year()}.",
        ],
        highlights=highlights,
    )
