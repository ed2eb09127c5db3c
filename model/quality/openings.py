"""Words that begin sentences of news without being names: the words of a reporter.

The first word of a sentence has a capital whatever it is. This list tells some of these
words from names, even if the source does not have them; `facts` recognises the others
by the source, by stop words and by their stems.
"""

_ADVERBS = """
about according across actually additionally afterward afterwards ago ahead almost alone
along already also although always amid among another anyone apparently around aside
away back because besides better beyond clearly currently decades despite earlier early
either else elsewhere enough especially even eventually ever every everyone everything
finally fortunately frequently generally great hours however hundreds indeed initially
inside instead just largely last late lately later latest least less likely long lots
many maybe meantime meanwhile millions minutes months moreover mostly much near nearly
neither never nevertheless new next nobody none nonetheless nothing now nowadays
occasionally often only originally otherwise outside overall per perhaps possible
possibly presumably previously probably quite rarely rather recently regardless roughly
several shortly similarly since so somebody someone something sometimes soon still
subsequently such suddenly surprisingly thankfully then therefore thousands thus today
together tomorrow tonight toward towards twice two typically ultimately unfortunately
unless unlike upon usually versus weeks well whatever whenever whether within without
worse years yes yesterday yet
"""

_NEWS = """
activists advocates agents aide aides analyst analysts attorney attorneys authorities
campaigners children citizens coach commentator commentators companies company
conservatives couple court critics customers defendant democrats detectives doctor
doctors driver drivers economists editor editors email emails employees engineers
evidence executives expert experts families family fans father fellow firefighters five
footage forensic former friends girl girls government group groups historian host
husband indictment insider insiders investigation investigator investigators investors
judge jury killer lawmaker lawmakers lawsuit lawyer lawyers leaders man manager medics
men mom mother mothers motorist neighbors neighbours news newspaper newspapers officer
officers official officials one opponents opposition organizers owner owners paramedics
parent parents passengers patients people photo photographer photos pictures player
players police politician politicians polls president pro producer producers professor
prosecution prosecutor prosecutors protesters protestors publisher report reporter
reporters reports rescuers research researcher researchers residents retailers rival
scientist scientists sheriff shoppers soldiers source sources spokesman spokesperson
spokeswoman statement student students studies study supporters survey survivors suspect
suspects teacher teachers teams teenager teenagers three tourists troops user users
victim victims video videos viewers visitors voters warning watch wife witness witnesses
woman women worker workers writer writers youth
"""

OPENINGS = frozenset([*_ADVERBS.split(), *_NEWS.split()])
