# SPDX-License-Identifier: Apache-2.0
"""One run: its rounds, results and failures, and what a part of the report is made of."""

import contextlib, dataclasses, os, statistics, sys

from machine import Rounds
from servers import Trouble


def note(sentence):
    print(sentence, file=sys.stderr, flush=True)


class Run:
    """Results by the name of a series, one for each round.

    A series that fails once is not measured again; the others go on.
    """

    def __init__(self, options, stage):
        self.stage = stage
        self.program, self.client, self.is_quick = options.program, options.client, options.quick
        self.rounds = range(options.rounds or (2 if options.quick else 5))
        self.seconds = options.seconds or (1 if options.quick else 4)
        self.quiet = Rounds()
        self.results, self.failures = {}, {}

    def measure(self, name, function):
        if name in self.failures: return None
        try:
            result = self.quiet.run(function)
        except Exception as error:
            self.fail(name, error)
            return None
        self.results.setdefault(name, []).append(result)
        return result

    def fail(self, name, error):
        self.failures[name] = f"{error}" or type(error).__name__
        note(f"{name}: {self.failures[name]}")

    @contextlib.contextmanager
    def servers(self, *makers):
        """Starts servers; in the place of one that does not start is what fails when it is used."""
        with contextlib.ExitStack() as stack:
            started = []
            for maker in makers:
                try:
                    started.append(stack.enter_context(maker()))
                except (OSError, Trouble) as error:
                    started.append(Absent(error))
            yield started

    def targets(self, name, lines):
        """A file of credentials and paths for wrk."""
        path = os.path.join(self.stage, name)
        with open(path, "w") as file:
            file.writelines(f"{credential} {target}\n" for credential, target in lines)
        return path

    # What the report asks for.

    def median(self, name, field):
        """None: there is no result."""
        return Figure.of(one[field] for one in self.results.get(name, []))

    def ratio(self, name, other, field, other_field=None):
        """That of the pairs of rounds, which were measured one after the other."""
        return Figure.of(
            one[field] / two[other_field or field]
            for one, two in zip(self.results.get(name, []), self.results.get(other, [])))

    def shares(self, name):
        """For each thousandth, the median of the rounds."""
        return [statistics.median(column) for column in zip(*(one["shares"] for one in self.results[name]))]

    def durations(self, names):
        """A table of durations in milliseconds."""
        fields = "least", "p50", "p90", "p99", "most"
        return table(
            ["ms", "min", "p50", "p90", "p99", "max"],
            [self.line(name, title, fields, len(fields)) for name, title in names])

    def line(self, name, title, fields, ranges=1):
        """A line of a table: of the first fields with their ranges, of the others the median."""
        if name not in self.results:
            return [title, self.failures.get(name, "not measured")] + [""] * (len(fields) - 1)
        figures = [self.median(name, field) for field in fields]
        return [title] + [
            spread(figure) if index < ranges else number(figure and figure.median)
            for index, figure in enumerate(figures)]


class Absent:
    """A server that did not start."""

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        raise Trouble(f"{self._error}")


def distribution(times):
    """Of some durations."""
    ordered = sorted(times)
    shares = [ordered[len(ordered) * share // 1000] for share in range(1000)]
    return {
        "least": ordered[0], "p50": shares[500], "p90": shares[900], "p99": shares[990], "most": ordered[-1],
        "shares": shares}


@dataclasses.dataclass
class Figure:
    """The median of some rounds, with the least and the greatest."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, numbers):
        numbers = [number for number in numbers if number is not None]
        return cls(statistics.median(numbers), min(numbers), max(numbers)) if numbers else None


def number(value, unit=""):
    """With three digits, or all those before the point."""
    if value is None: return "?"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 3
    return f"{value:,.{digits}f}{unit}"


def spread(figure, unit=""):
    if figure is None: return "?"
    if figure.least == figure.greatest: return number(figure.median, unit)
    return f"{number(figure.median)} ({number(figure.least)}-{number(figure.greatest)}){unit}"


@dataclasses.dataclass
class Row:
    """A goal, and what came of it."""

    what: str
    goal: str
    measured: str
    is_met: bool | None

    @classmethod
    def at_least(cls, what, goal, figure, unit=""):
        if figure is None: return cls(what, f"≥ {number(goal, unit)}", "", None)
        return cls(what, f"≥ {number(goal, unit)}", spread(figure, unit), figure.median >= goal)

    @classmethod
    def at_most(cls, what, goal, figure, unit=""):
        if figure is None: return cls(what, f"≤ {number(goal, unit)}", "", None)
        return cls(what, f"≤ {number(goal, unit)}", spread(figure, unit), figure.median <= goal)

    @classmethod
    def without_goal(cls, what, figure, unit=""):
        return cls(what, "", spread(figure, unit), None)

    @property
    def verdict(self):
        if not self.goal: return ""
        return {True: "met", False: "**missed**", None: "**not measured**"}[self.is_met]


@dataclasses.dataclass
class Section:
    title: str
    rows: list
    text: str
    pictures: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Picture:
    name: str
    title: str
    svg: str | None


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])
