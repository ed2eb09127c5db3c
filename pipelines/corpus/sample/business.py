"""Stories about business: company results and a product recall."""

from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import Story


def results(draw: Draw) -> Story:
    """A company's profit rose or fell, or it made a loss."""
    trade = draw.one(
        [
            "Foods",
            "Motors",
            "Airlines",
            "Textiles",
            "Software",
            "Pharma",
            "Shipping",
            "Energy",
            "Stores",
            "Toys",
        ]
    )
    firm = draw.company(trade)
    rival = draw.company(trade)
    boss = draw.person()
    analyst = draw.person()
    profit = draw.millions(11, 480)
    sales = draw.millions(500, 990)
    rival_profit = draw.millions(11, 480)
    share = draw.percent(3, 48)
    jobs = draw.count(120, 4800)
    day = draw.day()
    good_reason = draw.one(
        [
            "strong demand abroad",
            "lower fuel prices",
            "new customers in Asia",
            "a warm summer",
            "its online shop",
        ]
    )
    bad_reason = draw.one(
        [
            "weak demand at home",
            "higher wages",
            "the price of steel",
            "a cold spring",
            "late deliveries",
            "a costly lawsuit",
        ]
    )
    ending = draw.below(3)
    if ending == 0:
        change = [
            f"Profit for the year rose {share} to {profit}.",
            f"At {profit}, annual profit was up {share}.",
        ]
        highlights = (
            f"Annual profit at {firm} has climbed {share} to {profit}.",
            f"Chief executive {boss} credits {good_reason}.",
        )
    elif ending == 1:
        change = [
            f"Profit for the year fell {share} to {profit}.",
            f"At {profit}, annual profit was down {share}.",
        ]
        highlights = (
            f"Annual profit at {firm} has slumped {share} to {profit}.",
            f"Chief executive {boss} puts it down to {bad_reason}.",
        )
    else:
        change = [
            f"The year ended with a loss of {profit}.",
            f"The books show a loss of {profit} for the year.",
        ]
        highlights = (
            f"{firm} will cut {jobs} jobs after losing {profit} in a year.",
            f"Boss {boss} points to {bad_reason}.",
        )
    reason = good_reason if ending == 0 else bad_reason
    cuts = (
        f"It will cut {jobs} jobs by {draw.date()}."
        if ending == 2
        else f"No changes are planned among the {jobs} jobs."
    )
    return Story(
        openings=[
            (
                "Traders had been waiting for the figures "
                f"since the market opened at {draw.hour()}."
            ),
            (
                f"The annual meeting on {draw.day()} was held in a hotel ballroom, "
                "with coffee and cake."
            ),
            f"A look at the books of {firm} was awaited with some nerves.",
            "It has been a turbulent year for the whole branch.",
        ],
        leads=[
            (
                f"{firm} has reported its annual figures, "
                f"a week after {rival}, and the market took notice."
            ),
            (
                f"The annual profit of {firm} was the topic of the day among traders, "
                f"said {analyst}, who follows the company."
            ),
            (
                f"Annual figures from {firm} were published on {day}, "
                "some hours later than planned."
            ),
        ],
        facts=[
            change,
            [
                f"The head of {firm}, {boss}, said that the reason was {reason}.",
                f'"It was mainly {reason}," said {boss}, chief executive of {firm}.',
                (
                    f"{boss}, chief executive of {firm}, "
                    f"told shareholders that {reason} made the difference."
                ),
            ],
            [cuts],
        ],
        asides=[
            f"Its rival {rival} had announced a profit of {rival_profit} on {day}.",
            f"Sales were {sales}, about as much as expected.",
            (
                f"Analyst {analyst} of {draw.last_name()} Bank had hoped for more "
                f"and spoke of {draw.percent(3, 48)}."
            ),
            f"The shares closed {draw.percent(1, 9)} lower on the day.",
            (
                f"The firm was founded in {draw.town()} "
                f"in {draw.year()} by {draw.person()}."
            ),
            (
                f"A plant in {draw.town()} "
                f"with {draw.count(120, 4800)} workers was closed last year."
            ),
        ],
        endings=[
            f"The dividend will be paid on {draw.date()}.",
            f"New figures are due on {draw.date()}.",
            "The board did not give a forecast for next year.",
        ],
        highlights=highlights,
    )


def recall(draw: Draw) -> Story:
    """A maker takes a product back, because of injuries or only as a precaution."""
    thing, trade, risk = draw.one(
        [
            ("toasters", "Electric", "the plug can overheat"),
            ("pushchairs", "Nursery", "a hinge can trap fingers"),
            ("bicycles", "Cycles", "the brake cable can snap"),
            ("smoke alarms", "Home", "the battery can leak"),
            ("jars of honey", "Foods", "they may hold bits of glass"),
            ("ladders", "Tools", "a rung can come loose"),
            ("kettles", "Kitchen", "the handle can break"),
            ("desk lamps", "Lighting", "the switch can give a shock"),
        ]
    )
    maker = draw.company(trade)
    rival = draw.company(trade)
    town = draw.town()
    units = draw.count(1200, 98000)
    sold = draw.count(120000, 900000)
    boss = draw.person()
    expert = draw.person()
    cases = draw.count(3, 60)
    old_cases = draw.count(3, 60)
    if draw.below(2):
        outcome = [
            f"So far {cases} customers have been injured.",
            f"The safety office knows of {cases} customers who were injured.",
        ]
        highlights = (
            (
                f"{maker} is recalling {units} {thing} "
                f"after {cases} customers were injured."
            ),
            f"The safety office warns that {risk}.",
        )
    else:
        outcome = [
            "No injuries are known and the step is purely a precaution.",
            "It is only a precaution, because nobody has come to harm.",
        ]
        highlights = (
            f"As a precaution, {maker} has asked buyers to return {units} {thing}.",
            f"Laboratory tests showed that {risk}.",
        )
    return Story(
        openings=[
            (
                "Shoppers are being asked to look into their cupboards "
                "and check a number on a label."
            ),
            (
                f"Signs went up in shops across the country on {draw.day()}, "
                "and telephone lines were soon busy."
            ),
            (
                f"The first complaint came from {draw.person()}, "
                f"a teacher from {draw.town()}."
            ),
            (
                "It was meant to be the best seller of the season, "
                "and now the shelves are empty."
            ),
        ],
        leads=[
            (
                f"A recall of {thing} has been announced by {maker}, "
                "the newest in a row of such cases."
            ),
            (
                f"Buyers of {thing} should look closely at what they have at home, "
                f"the safety office in {town} said."
            ),
            (
                f"{maker} is in the news because of its {thing}, "
                f"and a meeting was called at the head office in {town}."
            ),
        ],
        facts=[
            outcome,
            [
                f"The maker, {maker}, is taking back {units} {thing}.",
                f"Affected are {units} {thing} made by {maker}.",
                (
                    f"In all, {units} {thing} "
                    f"that {maker} sold since {draw.month()} must go back."
                ),
            ],
            [
                f"Laboratory checks found that {risk}.",
                f'"We learned that {risk}," said {boss}, the head of the company.',
                f"The fault is a simple one: {risk}.",
            ],
        ],
        asides=[
            (
                f"The company, which has its factory in {town}, "
                f"sold {sold} goods last year."
            ),
            (
                f"In {draw.year()} a rival, {rival}, called back "
                f"{draw.count(1200, 98000)} {thing} after {old_cases} complaints."
            ),
            (
                f'"I use mine every day," said {draw.person()}, '
                f"a customer in {draw.town()}."
            ),
            (
                f"Shares in {draw.company('Stores')}, "
                f"a large retailer, fell {draw.percent(2, 9)}."
            ),
            (
                f"Professor {expert} said that such faults were found "
                f"in one product in {draw.count(200, 5000)}."
            ),
        ],
        endings=[
            f"Buyers will get their money back until {draw.date()}.",
            f"A free telephone line is open until {draw.hour()} every day.",
            "Retailers have taken the goods off their shelves.",
        ],
        highlights=highlights,
    )
