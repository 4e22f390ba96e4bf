"""The verdict of a page, one of four: from the overall test, the interval of the ECE and a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.numbers import number
from calibrary.data import Data
from calibrary.data.predictions import Predictions
from calibrary.evaluation import Evaluation, Row, evaluate_data
from calibrary.inference.overall.decision import Decision
from calibrary.question import Question

#: The four verdicts, as JSON has them; a sentence has the tolerance as a number.
NOT, NOT_BUT, WITHIN, UNKNOWN = (
    "not calibrated", "not calibrated, but within tolerance", "calibrated within tolerance", "cannot tell",
)  # fmt: skip
#: The colour of each verdict: the class of an element of the page.
COLOURS = {NOT: "bad", NOT_BUT: "warn", WITHIN: "ok", UNKNOWN: "unknown", "": "none"}
#: An ECE up to this size is tolerated, and one up to this share of the frequency of the rarer of two classes.
TOLERANCE, OF_THE_RARER = 0.05, 0.2
#: Segments named in a verdict.
_MOST_NAMED = 2


@dataclass(frozen=True)
class PageVerdict:
    """What the data say: ``value`` is one of the four; the rest is what a sentence about it needs.

    ``rejected`` is the result of the overall test, ``high`` the upper end of the interval of the ECE (NaN without an
    interval), ``rows`` the number of rows; ``excepted`` names the segments that are significantly miscalibrated by
    themselves.
    """

    rejected: bool
    tolerance: float
    high: float = math.nan
    rows: float = math.nan
    nouns: str = "rows"
    metric: str = "ece"
    excepted: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """One of the four verdicts; with a miscalibrated segment it is never "calibrated"."""
        if self.high <= self.tolerance:
            return NOT_BUT if self.rejected or self.excepted else WITHIN
        return NOT if self.rejected else UNKNOWN

    @property
    def words(self) -> str:
        """The first words of a headline."""
        within = f"{self.tolerance:g}"
        return {
            NOT: "Not calibrated",
            NOT_BUT: f"Not calibrated, but within {within}" if self.rejected else f"Within {within} on the whole",
            WITHIN: f"Calibrated within {within}",
            UNKNOWN: f"Cannot tell whether the ECE is within {within}",
        }[self.value]

    @property
    def rows_needed(self) -> float:
        """About how many rows of a calibrated model have an interval of the ECE that ends at the tolerance."""
        if not self.high > self.tolerance > 0.0:
            return math.nan
        needed = self.rows * (self.high / self.tolerance) ** 2  # the ends of a calibrated model fall with 1/sqrt(N)
        if math.isinf(needed):  # the tolerance is a share of events that are next to impossible
            return math.nan
        size = 10.0 ** math.floor(math.log10(needed))
        digits = 0 if needed >= 2.0 * size else 1
        return float(round(needed, digits - int(math.log10(size))))

    def reason(self, others: bool = False) -> Sentence:
        """What the data still allow where they cannot tell, and which segments are excepted from the verdict.

        ``others``: the headline shows another metric than the ECE, so that the end of its interval stands here.
        """
        parts: list[str] = []
        upto = Claim(f"an ECE up to {number(self.high)}", "interval", metric=self.metric, low=0.0, high=self.high)
        if self.value == UNKNOWN and math.isnan(self.high):
            parts.append("these data give no interval of the ECE")
        elif self.value == UNKNOWN:
            needed = self.rows_needed
            more = f"; about {needed:,.0f} {self.nouns} would settle it" if needed > self.rows else ""
            parts.append(Sentence(f"{upto} is compatible with these {self.rows:,.0f} {self.nouns}{more}", upto))
        elif others and self.value != NOT:
            parts.append(Sentence(f"{upto} is compatible with these data", upto))
        if self.excepted and not self.rejected:
            # an intersection says nothing new beside the segment that contains it
            alone = [e for e in self.excepted if not set(e.split(" and ")) & (set(self.excepted) - {e})]
            named, rest = alone[:_MOST_NAMED], len(alone) - _MOST_NAMED
            more = f" and {rest} more" if rest > 0 else ""
            said = f"not calibrated in {', '.join(named)}{more}"
            parts.append(Sentence(said, *(Claim(said, "part is miscalibrated", part=each) for each in named)))
        return Sentence.joined("; ", parts)


def tolerance_of(given: float | None, data: Data) -> float:
    """The tolerated ECE: the given one, else 0.05 or, of two classes, a fifth of the share of the rarer one.

    Where every label is the same, the share is the predicted one.
    """
    if given is not None:
        if not 0.0 < float(given) < 1.0:
            raise RefusedError(f"tolerance={given!r}: pass an ECE above 0 and below 1, such as 0.05")
        return float(given)
    p: Predictions = data.read_as("predictions", "a report")
    if p.k != 2 or data is not p:
        return TOLERANCE
    shares = p.class_share if p.class_share.min() > 0.0 else p.mean(p.p)
    tolerance = float(f"{OF_THE_RARER * float(shares.min()):.2g}")
    return min(TOLERANCE, tolerance or TOLERANCE)


def page_verdict(
    data: Data, question: Question, evaluation: Evaluation, decision: Decision | None, tolerance: float,
    excepted: Sequence[str] = (),
) -> PageVerdict | None:  # fmt: skip
    """The verdict of a page; None where nothing was tested."""
    if decision is None:
        return None
    row = error_row(data, question, evaluation)
    high = math.nan if row is None or row.high is None else row.high
    rows = float(data.read_as("predictions", "a report").n_predictions)
    metric = "ece" if row is None else row.id
    return PageVerdict(decision.rejected, tolerance, high, rows, data.nouns, metric, tuple(excepted))


def error_row(data: Data, question: Question, evaluation: Evaluation) -> Row | None:
    """The ECE through the page's own lens with its interval: from the table, or computed where the table has none."""
    found = [row for row in evaluation.rows if row.id in ("ece", "d_ece")]
    if not found:
        with collected_warnings():
            found = list(evaluate_data(data, question, metrics=["ece"], intervals=True, tests=False).rows)
    return max(found, key=lambda row: row.primary, default=None)


def status_of(words: str, page: str) -> str:
    """The status of one number, one of the four: its own verdict in words, beside the verdict of the page.

    Only a number that is significant is "not calibrated"; the others have the size of the page's error to go by.
    """
    if not words or not page or words in ("not tested", "undefined here") or words.startswith("as its own"):
        return ""
    within = page in (NOT_BUT, WITHIN)
    if words.startswith(("miscalibrated", "probably miscalibrated")) or words.endswith("own probabilities imply"):
        return NOT_BUT if within else NOT
    if words.startswith(("unclear", "too few")):
        return UNKNOWN
    return WITHIN if within else UNKNOWN
