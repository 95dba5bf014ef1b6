"""A paper of coin tosses: one study, one table."""

from types import MappingProxyType

from isorun import Study
from isorun.report import Column, Table
from isorun.study.records import RunState
from isorun.zoo.paper import SCALES, AbstractPaper, Exhibit, Omission, Presentation, Scale, smoke_verdict

_TOSS = "import random; print('heads:', random.random())"


class Coins(AbstractPaper):
    """How often a coin shows heads."""

    name = "coin-paper"
    title = "On the tossing of coins"
    reference = "nobody, never"
    exhibits = (Exhibit("Table 1", "how many tosses there were"),)
    not_attempted = (Omission("Figure 1", "a drawing of a coin."),)
    networks = ()
    data = ()
    parts = ()
    scales = MappingProxyType({name: Scale(name, "nothing") for name in SCALES})

    def studies(self, request):
        runs = request.runs or 2
        study = Study("coins", approaches={"toss": ["python", "-c", _TOSS]}, repeats=runs, folder=request.folder)
        return (study,)

    def present(self, request, records):
        finished = sum(record.state is RunState.FINISHED for found in records.values() for record in found)
        table = Table("tosses", "Table 1", (Column("study", key=True), Column("tosses")), (("coins", str(finished)),))
        return Presentation(smoke_verdict(finished), (table,), numbers={"tosses": finished})


PAPER = Coins()
