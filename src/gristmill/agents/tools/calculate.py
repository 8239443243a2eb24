"""The tool that computes exactly: sums, differences, products and shares of decimal numbers."""

import ast
import operator
from collections.abc import Callable
from decimal import Decimal, DecimalException, localcontext
from typing import Any

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.errors import Refused

LONGEST = 4_000  # characters
DIGITS = 40  # of a result that does not end
LARGEST = Decimal(10) ** 30
MOST_PLACES = 100  # before and behind the point, also on the way: a number with millions of them is written for ever
OPERATORS: dict[type[ast.AST], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / right,
}


def _round(number: Decimal, places: Decimal = Decimal(0)) -> Decimal:
    return round(number, int(places))


FUNCTIONS: dict[str, Callable[..., Decimal]] = {
    "sum": lambda *given: sum(given, Decimal(0)),
    "min": min,
    "max": max,
    "round": _round,
}


class Calculate(Arguments):
    """What is computed."""

    expression: str = Field(
        min_length=1,
        max_length=LONGEST,
        description="For example sum(19.99, 5.00) * 1.19, or round(100 / 3, 2). Decimal points, no separators.",
    )


async def calculate(arguments: Calculate, context: ToolContext) -> ToolResult:
    value = compute(arguments.expression)
    written = format(value, "f")
    return ToolResult(f"{arguments.expression.strip()} = {written}", {"value": written})


def compute(expression: str) -> Decimal:
    """The value of an expression, exact in decimal digits; Refused if it is none."""
    line = " ".join(expression.split())  # so that the place of a number is its place in the line
    try:
        tree = ast.parse(line, mode="eval")
        with localcontext(prec=DIGITS):
            value = _compute(tree.body, line)
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise Refused(f"“{expression[:80]}” cannot be computed: write numbers, + - * / and brackets.") from error
    except (DecimalException, OverflowError, TypeError) as error:
        raise Refused(f"“{expression[:80]}” has no value: {type(error).__name__}.") from error
    if abs(value) > LARGEST:
        raise Refused("The result is too large.")
    return value


def _compute(node: ast.AST, text: str) -> Decimal:
    value = _compute_freely(node, text)
    if not value.is_finite() or abs(value.adjusted()) > MOST_PLACES:
        raise Refused(f"“{text[:80]}” has a number with more than {MOST_PLACES} places.")
    return value


def _compute_freely(node: ast.AST, text: str) -> Decimal:
    match node:
        case ast.Constant(col_offset=start, end_col_offset=end):
            # as it is written: a binary number would not be exact
            return Decimal(text.encode()[start:end].decode().replace("_", ""))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_compute(left, text), _compute(right, text))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_compute(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _compute(operand, text)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*_compute_all(args, text))
        case _:
            raise Refused(f"“{text[:80]}” cannot be computed: write numbers, + - * / and sum, min, max, round.")


def _compute_all(nodes: list[Any], text: str) -> list[Decimal]:
    return [_compute(one, text) for one in nodes]


TOOL = Tool("calculate", "Compute exactly with decimal numbers: sums, differences, shares.", Calculate, calculate)
