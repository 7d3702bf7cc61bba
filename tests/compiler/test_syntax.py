"""The parser: trees for the forms that could be mistaken for each other, and recovery."""

from pathlib import Path

import pytest

from compiler import syntax as s
from compiler.diagnostics import Diagnostics
from compiler.lexer import tokenize
from compiler.parser import MAX_CHAIN, parse
from compiler.source import Line, Text

from .programs import errors_of


def tree(text: str) -> s.Program:
    diagnostics = Diagnostics()
    diagnostics.text = Text(text, [Line("x.p4", i + 1, x) for i, x in enumerate(text.split("\n"))])
    program = parse(tokenize(text, diagnostics), diagnostics)
    assert not diagnostics.error_count, diagnostics.found[0].render()
    return program


def value(text: str, before: str = "") -> s.Expr:
    program = tree(f"{before}\nconst bit<8> x = {text};")
    constant = program.declarations[-1]
    assert isinstance(constant, s.Constant)
    return constant.value


def shape(expr: s.Expr) -> str:
    if isinstance(expr, s.Binary):
        return f"({shape(expr.left)}{expr.op}{shape(expr.right)})"
    if isinstance(expr, s.Unary):
        return f"{expr.op}{shape(expr.operand)}"
    if isinstance(expr, s.Ternary):
        return f"({shape(expr.condition)}?{shape(expr.yes)}:{shape(expr.no)})"
    if isinstance(expr, s.Cast):
        return f"cast({shape(expr.operand)})"
    if isinstance(expr, s.Call):
        return f"{shape(expr.function)}<{len(expr.type_args)}>({len(expr.args)})"
    if isinstance(expr, s.Member):
        return f"{shape(expr.base)}.{expr.name}"
    if isinstance(expr, s.Name):
        return expr.name
    if isinstance(expr, s.Number):
        return str(expr.value)
    if isinstance(expr, s.Slice):
        return f"{shape(expr.base)}[{shape(expr.high)}:{shape(expr.low)}]"
    return type(expr).__name__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "(1+(2*3))"),
        ("1 - 2 - 3", "((1-2)-3)"),
        ("a & b == c", "(a&b==c)".replace("a&b==c", "(a&b)==c")),
        ("a || b && c", "(a||(b&&c))"),
        ("a ++ b[7:0]", "(a++b[7:0])"),
        ("a ? b : c ? d : e", "(a?b:(c?d:e))"),
        ("-a + !b", "(-a+!b)"),
        ("a << 1 + 2", "(a<<(1+2))"),
        ("a >> 2 > b", "((a>>2)>b)"),
        ("a < b", "(a<b)"),
        ("f<bit<8>>(a)", "f<1>(1)"),
        ("f<tuple<bit<8>, bit<8>>>(a)", "f<1>(1)"),
        ("a < b && c > d", "((a<b)&&(c>d))"),
        ("(a) - b", "(a-b)"),
        ("(bit<8>) - b", "cast(-b)"),
        ("a |+| b", "(a|+|b)"),
        ("a.b.c(1, 2)", "a.b.c<0>(2)"),
        ("a | b ^ c & d", "(a|(b^(c&d)))"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert shape(value(text)) == expected


def test_a_cast_needs_a_type_in_scope() -> None:
    assert shape(value("(T) - b", "typedef bit<8> T;")) == "cast(-b)"
    assert shape(value("(T) - b", "const bit<8> T = 1;")) == "(T-b)"


def test_words_of_tables_are_plain_names_elsewhere() -> None:
    program = tree("struct s { bit<8> key; bit<8> actions; bit<8> type; bit<8> apply; }")
    declaration = program.declarations[0]
    assert isinstance(declaration, s.StructDecl)
    assert [f.name for f in declaration.fields] == ["key", "actions", "type", "apply"]


def test_local_declarations_are_told_from_statements() -> None:
    program = tree("""
        control C(inout bit<8> x) {
            apply {
                T a;
                T[3] b;
                T<bit<8>> c;
                x = 1;
                s[2].f = 3;
                f<bit<8>>(x);
                E(1) e;
            }
        }""")
    control = program.declarations[0]
    assert isinstance(control, s.ControlDecl)
    assert [type(x).__name__ for x in control.body.body] == [
        "Variable",
        "Variable",
        "Variable",
        "Assign",
        "Assign",
        "CallStatement",
        "Instance",
    ]


def test_select_cases_with_tuples_and_masks() -> None:
    program = tree("""
        parser P(packet_in p) {
            state start {
                transition select(a, b) {
                    (1, 2): accept;
                    (3 &&& 1, _): accept;
                    (4 .. 5, default): accept;
                    default: reject;
                }
            }
        }""")
    parser = program.declarations[0]
    assert isinstance(parser, s.ParserDecl)
    transition = parser.states[0].transition
    assert transition is not None
    assert [type(case.keyset).__name__ for case in transition.cases] == [
        "TupleKeyset",
        "TupleKeyset",
        "TupleKeyset",
        "Default",
    ]


def test_many_errors_are_reported_in_one_run(tmp_path: Path) -> None:
    text = "\n".join(f"struct s{i} {{ bit<8> a }}" for i in range(5))
    assert errors_of(tmp_path, text, "syntax") == ["missing-semicolon"] * 5


def test_errors_stop_being_reported_at_some_point(tmp_path: Path) -> None:
    text = "\n".join(f"struct s{i} {{ bit<8> a }}" for i in range(500))
    codes = errors_of(tmp_path, text, "syntax")
    assert codes[-1] == "too-many-errors"
    assert len(codes) < 50


@pytest.mark.parametrize(
    "text",
    [
        "const int x = " + "(" * 5000 + "1" + ")" * 5000 + ";",
        "const int x = " + "-" * 5000 + "1;",
        "const bit<8> x = " + "f(" * 5000,
        "typedef " + "tuple<" * 5000 + "bool" + ">" * 5000 + " t;",
        "control C() { apply { " + "{" * 5000 + "}" * 5000 + " } }",
        "control C() { apply { " + "if (true) " * 5000 + "; } }",
    ],
)
def test_deep_nesting_is_refused_politely(tmp_path: Path, text: str) -> None:
    assert "too-deep" in errors_of(tmp_path, text)


def test_a_long_chain_within_the_limit_compiles(tmp_path: Path) -> None:
    assert errors_of(tmp_path, "const int x = 1" + " + 1" * (MAX_CHAIN - 1) + ";", "types") == []
    assert errors_of(tmp_path, "const int x = 1" + " + 1" * 5000 + ";", "types") == ["too-deep"]
