"""Stories about free time: football match, concert, museum."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story

_CLUBS = [
    "Rovers",
    "United",
    "Athletic",
    "Wanderers",
    "City",
    "Rangers",
    "Albion",
    "Harriers",
]
_SONG_BEGINNINGS = [
    "Silver",
    "Broken",
    "Winter",
    "Paper",
    "Midnight",
    "Golden",
    "Little",
    "Lonely",
]
_OLD_SONG_BEGINNINGS = ["Crimson", "Velvet", "Summer", "Glass"]


def match(draw: Draw) -> Story:
    """A football match: a home win, an away win, or a draw."""
    home = f"{draw.town()} {draw.one(_CLUBS)}"
    away = f"{draw.town()} {draw.one(_CLUBS)}"
    third = f"{draw.town()} {draw.one(_CLUBS)}"
    scorer = draw.person()
    keeper = draw.person()
    coach = draw.person()
    other_coach = draw.person()
    veteran = draw.person()
    low = draw.below(3)
    score = f"{low + draw.between(1, 3)}-{low}"
    minute = draw.count(61, 90)
    other_minute = draw.count(11, 44)
    crowd = draw.count(900, 68000)
    goal = draw.one(
        [
            "a header",
            "a free kick",
            "a penalty",
            "a long shot",
            "a volley",
            "a simple tap-in",
        ]
    )
    ending = draw.below(3)
    if ending == 0:
        final = [
            f"{home} beat {away} {score} in front of {crowd} people.",
            f"It ended {score} for {home} against {away}, and {crowd} people saw it.",
        ]
        kind = "winner"
        highlights = (
            f"{home} defeated {away} {score} at home before {crowd} people.",
            f"{scorer} settled the match with {goal} in minute {minute}.",
        )
    elif ending == 1:
        final = [
            f"{away} won {score} at {home} in front of {crowd} people.",
            f"The {crowd} people in the ground saw {home} lose {score} to {away}.",
        ]
        kind = "winner"
        highlights = (
            f"{away} took the points with a {score} victory away to {home}.",
            f"{scorer} decided it with {goal} in minute {minute}.",
        )
    else:
        score = f"{low}-{low}" if low else "1-1"
        final = [
            f"{home} and {away} drew {score} in front of {crowd} people.",
            f"It ended {score} between {home} and {away}, and {crowd} people saw it.",
        ]
        kind = "equaliser"
        highlights = (
            f"{home} and {away} shared the points in a {score} draw.",
            f"{scorer} rescued a point with {goal} in minute {minute}.",
        )
    return Story(
        openings=[
            (
                "Heavy rain had turned the pitch into a pond "
                f"by the time the teams came out on {draw.day()}."
            ),
            (
                f"It was a night that {veteran}, who has held a season ticket "
                f"for {draw.count(20, 60)} years, will talk about for a while."
            ),
            f"The home of {home} was loud long before the whistle.",
            (
                "There were empty seats at first, "
                f"and late trains were to blame on {draw.day()}."
            ),
        ],
        leads=[
            (
                f"{home} met {away} on a cold evening, "
                f"and coach {coach} had asked for courage."
            ),
            (
                f"The meeting of {home} "
                f"and {away} had been eagerly awaited since the game with {third}."
            ),
            (
                f"It was {away} who had the ball first at {home}, "
                f"and keeper {keeper} was soon busy."
            ),
        ],
        facts=[
            final,
            [
                f"It was {scorer} who got the {kind} in minute {minute} with {goal}.",
                (
                    f"{scorer} came off the bench "
                    f"and got the {kind} with {goal} in minute {minute}."
                ),
                f"The {kind} was {goal} by {scorer} in minute {minute}.",
            ],
        ],
        asides=[
            (
                f"Coach {coach} had left out {draw.person()}, who was injured "
                f"in the {draw.one(['cup', 'league'])} game at {third}."
            ),
            f"In minute {other_minute} goalkeeper {keeper} saved from {draw.person()}.",
            f'"We wanted this more than anything," said coach {coach}.',
            (
                f"Last season the sides met {draw.small()} times, "
                f"and the last game ended {draw.between(4, 6)}-{draw.between(4, 6)}."
            ),
            f"The referee, {draw.person()}, showed {draw.small()} yellow cards.",
            (
                f'"The luck was not on our side in minute {draw.count(45, 60)}," '
                f"said {other_coach}, the other coach."
            ),
            f"{third}, who lead the table, have {draw.count(41, 70)} points.",
        ],
        endings=[
            (
                f"The next match is against {draw.town()} {draw.one(_CLUBS)} "
                f"on {draw.date()}."
            ),
            "Fans sang in the streets until late.",
            (
                "The club also said "
                f"that tickets will cost {draw.percent(2, 9)} more next season."
            ),
        ],
        highlights=highlights,
    )


def concert(draw: Draw) -> Story:
    """A concert is sold out and praised, or is cancelled."""
    singer = draw.person()
    promoter = draw.person()
    fan = draw.person()
    town = draw.town()
    support = draw.person()
    endings = draw.shuffled(
        [
            "River",
            "Road",
            "Letter",
            "Window",
            "Harbour",
            "Lantern",
            "Sparrow",
            "Morning",
            "Garden",
        ]
    )
    song = f"{draw.one(_SONG_BEGINNINGS)} {endings[0]}"
    old_song = f"{draw.one(_OLD_SONG_BEGINNINGS)} {endings[1]}"
    crowd = draw.count(2100, 88000)
    songs = draw.count(14, 39)
    age = draw.count(21, 81)
    price = draw.count(22, 140)
    illness = draw.one(
        [
            "a throat infection",
            "a broken ankle",
            "a sprained wrist",
            "a bad cold",
            "a back injury",
            "an ear infection",
        ]
    )
    date = draw.date()
    if draw.below(2):
        news = [
            f"{singer}, {age}, sang {songs} songs and was called back again and again.",
            (
                f"It was the turn of {singer}, {age}, "
                f"who stayed on stage for {songs} songs."
            ),
        ]
        detail = [
            f'The loudest cheers were for "{song}", a new ballad.',
            f'With "{song}", which is not yet on sale, the evening came to its close.',
        ]
        highlights = (
            f"{singer} thrilled {crowd} fans in {town} with a show of {songs} songs.",
            f'The singer, {age}, also gave them the unreleased "{song}".',
        )
    else:
        news = [
            f"{singer}, {age}, cannot appear because of {illness}.",
            f"Doctors have told {singer}, {age}, to rest because of {illness}.",
        ]
        detail = [
            f"The show will now take place on {date}.",
            f"A new evening has been found: {date}.",
        ]
        highlights = (
            f"{singer}, {age}, has cancelled a concert in {town} because of {illness}.",
            f"The {crowd} fans are invited back on {date}.",
        )
    return Story(
        openings=[
            f"The first fans had put up their tents outside the gates on {draw.day()}.",
            f"{fan} had saved for months to buy a ticket for {price} dollars.",
            (
                "Hotels were fully booked, "
                f"and a man on {draw.street()} let out his garden shed."
            ),
            "Long before the doors were due to open there was singing in the car park.",
        ],
        leads=[
            (
                f"{singer} was to be the star of the season in {town}, "
                f"said promoter {promoter}."
            ),
            (
                f"There is much talk about the concert of {singer} in {town}, "
                f"where {support} was also on the bill."
            ),
            (
                f"The name {singer} was on every wall in {town}, "
                f"next to that of {support}."
            ),
        ],
        facts=[
            news,
            detail,
            [
                f"All {crowd} tickets for the arena in {town} had been sold.",
                f"In {town} the {crowd} tickets had gone within an hour.",
                f"For {town}, with {crowd} tickets sold, it was the event of the year.",
            ],
        ],
        asides=[
            (
                f'The career began in {draw.year()} with "{old_song}", '
                f"which sold {draw.count(90000, 900000)} copies."
            ),
            f"A band from {draw.town()} led by {support} was booked to play first.",
            (
                f'"I would not swap my seat for anything," said {fan}, '
                f"{draw.count(16, 79)}."
            ),
            (
                f"Promoter {promoter} expects {draw.count(90000, 900000)} visitors "
                "on the whole tour."
            ),
            f"In {draw.town()} last month only {draw.count(900, 2000)} people came.",
        ],
        endings=[
            f"The tour ends in {draw.town()} on {draw.date()}.",
            "Extra buses were laid on by the town.",
            f"An album is due on {draw.date()}.",
        ],
        highlights=highlights,
    )


def museum(draw: Draw) -> Story:
    """A museum opens, or it breaks a record in its first year."""
    town = draw.town()
    founder = draw.person()
    curator = draw.person()
    guest = draw.person()
    rival_town = draw.town()
    subject = draw.one(
        [
            "clocks",
            "lace",
            "lighthouses",
            "bread",
            "puppets",
            "maps",
            "umbrellas",
            "bees",
            "salt",
            "trams",
            "glass",
            "kites",
        ]
    )
    items = draw.count(300, 9800)
    visitors = draw.count(31000, 480000)
    cost = draw.millions(2, 48)
    fee = draw.count(4, 19)
    site = draw.one(
        [
            "a former brewery",
            "an old railway station",
            "a disused chapel",
            "a water tower",
            "a closed mill",
            "a former prison",
        ]
    )
    if draw.below(2):
        state = [
            f"From {draw.day()} visitors can see {items} pieces.",
            (
                f"Behind the doors, which open on {draw.day()}, "
                f"{items} pieces are waiting."
            ),
        ]
        highlights = (
            f"A museum of {subject} with {items} pieces is opening in {town}.",
            f"Collector {founder} has turned {site} into its home.",
        )
    else:
        state = [
            f"In its first year {visitors} people came, twice as many as hoped.",
            f"No one had expected {visitors} people in the first year.",
        ]
        highlights = (
            (
                f"{visitors} people visited the museum "
                f"of {subject} in {town} in its first year."
            ),
            f"The house that {founder} set up in {site} cost {cost}.",
        )
    return Story(
        openings=[
            (
                "The smell of fresh paint is still in the air "
                "and the cafe serves warm rolls."
            ),
            f"When {guest} first heard of the idea, there was a good deal of laughter.",
            (
                f"On {draw.day()} a queue reached around the corner "
                f"and down to {draw.street()}."
            ),
            "Not every passion fits into a living room.",
        ],
        leads=[
            (
                f"The museum of {subject} in {town} has visitors talking, "
                f"said curator {curator}."
            ),
            (
                f"A museum of {subject} is the pride of {town} these days, "
                f"wrote a newspaper in {rival_town}."
            ),
            (
                f"Curator {curator} led reporters through the museum of {subject} "
                "and had a story about each room."
            ),
        ],
        facts=[
            state,
            [
                f"The museum is all about {subject} and stands in {town}.",
                f"In {town} there is now a museum about nothing but {subject}.",
                f"A whole museum in {town} deals with {subject}.",
            ],
            [
                f"{founder}, who began to collect as a child, found {site} for it.",
                f"It was {founder}, a collector, who bought {site} to house it all.",
                (
                    f'"I saw {site} and knew it was the place," said the collector, '
                    f"{founder}."
                ),
            ],
            [
                f"The work cost {cost}.",
                f"Turning dust into display rooms cost {cost}.",
            ],
        ],
        asides=[
            f"Curator {curator} is proudest of a piece from {draw.year()}.",
            (
                "A gallery "
                f"in {rival_town} counted {draw.count(3000, 30000)} people last year."
            ),
            f"Admission is {fee} dollars, and children get in free.",
            f'"We shall be back," said {guest}, who came from {draw.town()}.',
            f"A trust run by {draw.person()} gave {draw.thousands(60, 900)}.",
            f"Among the exhibits on loan are {draw.count(11, 200)} from {draw.town()}.",
        ],
        endings=[
            f"Guided tours start at {draw.hour()}.",
            f"A second hall is planned for {draw.date()}.",
            "The shop sells postcards and a small guide.",
        ],
        highlights=highlights,
    )
