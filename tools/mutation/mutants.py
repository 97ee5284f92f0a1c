"""Finds the places in a C++ source where one small fault can be planted.

Works on formatted text, not on a syntax tree: clang-format puts spaces around binary operators and none inside
template brackets, so " < " is a comparison and "<" is not. A wrong guess does not compile, and is not counted.
"""

import re
from collections import namedtuple

KINDS = ("operator", "comparison", "constant", "statement", "pass")

# line counts from 1; [begin, end) are offsets in the file; `after` replaces them.
Mutant = namedtuple("Mutant", "kind file line begin end after")

OPERATORS = {
    " + ": [" - "], " - ": [" + "], " * ": [" / "], " / ": [" * "], " % ": [" * "],
    " && ": [" || "], " || ": [" && "], " += ": [" -= "], " -= ": [" += "], " *= ": [" /= "], " /= ": [" *= "],
    "std::max(": ["std::min("], "std::min(": ["std::max("],
}
COMPARISONS = {
    " < ": [" <= ", " >= "], " <= ": [" < ", " > "], " > ": [" >= ", " <= "], " >= ": [" > ", " < "],
    " == ": [" != "], " != ": [" == "],
}
NUMBER = re.compile(r"(?<![\w.'])(\d+)(\.\d+)?(e[+-]?\d+)?(?![\w.'])")
BOOLEAN = re.compile(r"\b(true|false)\b")
STATEMENT = re.compile(r"^[ \t]+(?!return\b|using\b|break\b|continue\b|case\b|default\b|goto\b|throw\b|delete\b|"
                       r"static\b|const\b|constexpr\b|auto\b|friend\b|typedef\b|namespace\b|else\b|public\b)"
                       r"[\w:.\->\[\]*()+]*[\w\])](\(.*\)| [-+*/|&]?= .*|\+\+|--);$")
DECLARATION = re.compile(r"^[ \t]+[\w:<>,*& ]+[\w>&*] [\w]+( = .*|\(.*\)|\{.*\})?;$")
PASS_CALL = re.compile(r"\b(\w+_pass|pass_\w+|apply\w*|run_pass\w*|rewrite\w*|verify\w*)\(")
# Checks of the program's own invariants are reached only when something else is broken; capacity is no result.
UNTOUCHED = re.compile(r"\b(ULYSIM_CHECK|static_assert)\(|\.reserve\(|\bshrink_to_fit\(")


def masked(text):
    """The text with comments, literals and untouched statements blanked, of the same length and lines."""
    out = list(text)

    def blank(begin, end):
        for i in range(begin, end):
            if out[i] != "\n":
                out[i] = "\x01"

    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*',
                       re.S | re.M)
    for match in token.finditer(text):
        blank(match.start(), match.end())
    bare = "".join(out)
    for match in UNTOUCHED.finditer(bare):
        end = bare.find(";", match.end())
        blank(match.start(), len(bare) if end < 0 else end + 1)
    return "".join(out)


def find_mutants(file, text):
    bare = masked(text)
    found = []

    def add(kind, begin, end, after):
        found.append(Mutant(kind, file, text.count("\n", 0, begin) + 1, begin, end, after))

    for kind, table in (("operator", OPERATORS), ("comparison", COMPARISONS)):
        for before, afters in table.items():
            at = bare.find(before)
            while at >= 0:
                for after in afters:
                    add(kind, at, at + len(before), after)
                at = bare.find(before, at + 1)
    for match in NUMBER.finditer(bare):
        whole = match.group(0)
        if whole == "0":
            add("constant", match.start(), match.end(), "1")
        elif match.group(2) or match.group(3):
            add("constant", match.start(), match.end(), "(%s * 2)" % whole)
        else:
            add("constant", match.start(), match.end(), str(int(whole) + 1))
    for match in BOOLEAN.finditer(bare):
        add("constant", match.start(), match.end(), "false" if match.group(0) == "true" else "true")

    begin = 0
    previous = ";"
    for line in bare.split("\n"):
        end = begin + len(line)
        # A line that neither follows an open expression nor leaves one open is a statement of its own.
        whole = previous in ";{}:" and "\x01" not in line.lstrip()[:1] and line.count("(") == line.count(")")
        if whole and STATEMENT.match(line) and not (DECLARATION.match(line) and " = " not in line):
            if not re.match(r"^[ \t]+[\w:<>,*&]+ [\w]+ = ", line):
                kind = "pass" if PASS_CALL.search(line) else "statement"
                add(kind, begin + len(line) - len(line.lstrip()), end, ";")
        code = line.replace("\x01", "").strip()
        if code:
            previous = code[-1]
        begin = end + 1
    return found
