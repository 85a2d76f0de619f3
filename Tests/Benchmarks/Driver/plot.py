# SPDX-License-Identifier: Apache-2.0
"""Plots of lines as SVG: dark text on white, logarithmic or linear axes, ranges as thin bars."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 92, 56
COLOURS = ["#1b5fb4", "#c2410c", "#15803d", "#7e22ce", "#b91c1c", "#0f766e"]
TEXT, GRID = "#1f2328", "#d8dee4"


def short(value):
    """A number of an axis."""
    for size, letter in (1e6, "M"), (1e3, "k"):
        if value >= size: return f"{value / size:g}{letter}"
    return f"{value:g}"


class Linear:
    """From zero."""

    def __init__(self, values):
        most = max(values)
        step = 10 ** math.floor(math.log10(most or 1))
        for factor in 0.2, 0.5, 1, 2:
            if most / (step * factor) <= 8: break
        step *= factor
        self.most = math.ceil(round(most / step, 6)) * step
        self.ticks = [
            (step * index, short(round(step * index, 9))) for index in range(round(self.most / step) + 1)]

    def place(self, value):
        return value / self.most


class Logarithmic:
    def __init__(self, values, ticks=None):
        low, high = min(values), max(values)
        if ticks is None:
            steps = [1, 2, 5] if high / low < 1e3 else [1]
            numbers = [step * 10.0 ** power for power in range(-4, 9) for step in steps]
            below = max(number for number in numbers if number <= low)
            above = min(number for number in numbers if number >= high)
            ticks = [number for number in numbers if below <= number <= above]
        self.low, self.high = math.log(min(ticks[0], low)), math.log(max(ticks[-1], high))
        self.ticks = [(number, short(round(number, 9))) for number in ticks]

    def place(self, value):
        return (math.log(value) - self.low) / ((self.high - self.low) or 1)


class Percentiles:
    """Shares from 0 to 0.999: as far from 0.9 to 0.99 as from there to 0.999."""

    def __init__(self, _):
        self.ticks = [
            (share, f"p{share * 100:g}") for share in (0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)]

    def place(self, value):
        return -math.log10(1 - value) / 3


def line_chart(title, x_title, y_title, series, x_axis, y_axis):
    """- series: points by name: x, y, and perhaps the least and the greatest y.
    Returns none if there are no points.
    """
    series = {name: line for name, line in series.items() if line}
    if not series: return None
    points = [point for line in series.values() for point in line]
    across = x_axis([point[0] for point in points])
    up = y_axis([value for point in points for value in point[1:]])
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(value): return LEFT + across.place(value) * inner_width

    def y(value): return TOP + (1 - up.place(value)) * inner_height

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="DejaVu Sans,Helvetica,Arial,sans-serif" '
        f'font-size="12" fill="{TEXT}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>']
    for value, text in across.ticks:
        parts.append(
            f'<path d="M{x(value):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{GRID}"/>'
            f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{text}</text>')
    for value, text in up.ticks:
        parts.append(
            f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>'
            f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{text}</text>')
    middle = TOP + inner_height / 2
    parts.append(
        f'<text x="{LEFT + inner_width / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>'
        f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>')
    legend, row = LEFT, 48
    for colour, (name, line) in zip(COLOURS, series.items()):
        width = 24 + 7 * len(name)
        if legend + width > WIDTH - RIGHT: legend, row = LEFT, row + 20
        parts.append(
            f'<path d="M{legend} {row}h18" stroke="{colour}" stroke-width="3"/>'
            f'<text x="{legend + 24}" y="{row + 4}">{escape(name)}</text>')
        legend += width + 22
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
            + " ".join(f"{x(point[0]):.1f},{y(point[1]):.1f}" for point in line) + '"/>')
        if len(line) > 20: continue
        for point in line:
            parts.append(f'<circle cx="{x(point[0]):.1f}" cy="{y(point[1]):.1f}" r="3.5" fill="{colour}"/>')
            if len(point) == 4:
                parts.append(
                    f'<path d="M{x(point[0]):.1f} {y(point[2]):.1f}V{y(point[3]):.1f}" stroke="{colour}"/>')
    return "\n".join(parts + ["</svg>", ""])
