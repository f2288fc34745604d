"""Names and sentences of clean packages use the words of the field; docs/internals/glossary.md lists these.

A package is clean when its older words are replaced. `CLEAN` lists the packages, and grows until it is the whole of
src. The rules find what can be found mechanically; whether a sentence is clear is for its reader to decide."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator

import pytest
from sources import PACKAGE, allowed

CLEAN = ("cep", "event_time", "sql", "table", "types", "windows")

# A variable is named for its content, and a function by a verb.
NAMES = {"found", "made", "each", "given", "own", "told", "dealt", "anew", "aside", "said", "asked", "gone", "brought"}
PARTICIPLES = r"(?!need|feed|seed|embed|exceed|proceed)[a-z]+ed|made|kept|built|found|sent|told|held"
CONDITIONS = r"(?:is|are|has|have|can|needs|wants|should|may|allows|supports)_\w+"

# Older words for something that has a word, and what to write instead.
WORDS = {
    r"told|tells?": "emit, notify, pass or report",
    r"dealt out|deals? out": "partition",
    r"say again|says again": "resend",
    r"stands?|stood": "is, is written, means or represents",
    r"lies?|lay": "is or occurs",
    r"shall": "must",
    r"anew|afresh": "again",
    r"for ever": "without limit",
    r"goes on|go on|went on": "continue",
    r"gives? up|gave up": "stop or abandon",
    r"whoever|whatever|nobody|somebody": "name who or what it is",
    r"said|asked": "name the call",
    r"made of": "consist of, or created from",
    r"alike": "in the same way, or equal",
    r"agenda": "timer queue",
    r"kin|folk|things?": "name the objects",
    r"in vain": "without result",
    r"(?:is|are) over(?=[.,;:)]|$)": "has ended, or has passed",
}
ADVICE = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): advice for words, advice in WORDS.items()}
ANY_WORD = re.compile("|".join(pattern.pattern for pattern in ADVICE), re.IGNORECASE)

Rule = Callable[[str], list[str]]


def find_names(source: str) -> list[str]:
    """Return the variables, parameters, attributes, functions and classes with a name that says nothing."""
    if not re.search(rf"\b_*(?:{'|'.join(NAMES)})\b", source, re.IGNORECASE):
        return []
    names = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.append((node.lineno, name))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.append((node.lineno, name))
    return [f"line {line}: {name}" for line, name in names if name.strip("_").lower() in NAMES]


def list_functions(source: str, names: str) -> list[ast.FunctionDef]:
    """Return the functions whose names match a regular expression; properties are values, and not returned."""
    if not re.search(rf"def _*(?:{names})\(", source):
        return []
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    functions = [node for node in functions if re.fullmatch(rf"_*(?:{names})", node.name)]
    return [node for node in functions if not any("property" in ast.unparse(d) for d in node.decorator_list)]


def find_participles(source: str) -> list[str]:
    return [f"line {node.lineno}: {node.name}" for node in list_functions(source, PARTICIPLES)]


def find_false_conditions(source: str) -> list[str]:
    """Return the functions whose names are conditions, but whose values are not booleans."""
    results = [(node, ast.unparse(node.returns)) for node in list_functions(source, CONDITIONS) if node.returns]
    return [f"line {f.lineno}: {f.name} returns {r}" for f, r in results if not re.search("bool|ndarray|TypeGuard", r)]


def list_sentences(source: str) -> Iterator[tuple[int, str]]:
    """Iterate over the lines of docstrings and messages, which are strings with spaces in them, and over comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            lines = enumerate(node.value.splitlines())
            yield from ((node.lineno + i, line) for i, line in lines if not line.lstrip().startswith((">>>", "...")))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def find_words(source: str) -> list[str]:
    if not ANY_WORD.search(source):
        return []
    sentences = [(line, re.sub(r"`[^`]*`|'[^' ]*'", "", sentence)) for line, sentence in list_sentences(source)]
    return [
        f"line {line}: '{match[0]}' (write: {advice}) in: {sentence.strip()}"
        for line, sentence in sentences
        for pattern, advice in ADVICE.items()
        if (match := pattern.search(sentence))
    ]


@pytest.mark.parametrize(
    ("find", "source", "count"),
    [
        (find_names, "found = 1\nfor each in (): ...\ndef f(given, *, _told): self.made = 2", 5),
        (find_names, "founder, each_row, own_rows = 1, 2, 3", 0),
        (find_participles, "def merged(a): ...\ndef _kept(): ...", 2),
        (find_participles, "def merge(a): ...\ndef embed(): ...\n@property\ndef closed(self): ...", 0),
        (find_false_conditions, "def is_ready() -> int: ...\ndef _needs_two() -> Operation: ...", 2),
        (find_false_conditions, "def is_ready() -> bool: ...\ndef has_rows(x) -> np.ndarray: ...", 0),
        (find_words, '"""Each window is told once, when it is over."""', 2),
        (find_words, "x = 1  # rows are dealt out by key", 1),
        (find_words, 'raise ValueError(f"it stands in {place}, which nobody reads")', 2),
        (find_words, '"""The standard order is over all rows; `told` is a name."""\nx = "told"', 0),
    ],
)
def test_the_rules_find_violations(find: Rule, source: str, count: int) -> None:
    assert len(find(source)) == count


@pytest.mark.parametrize(
    ("section", "find", "advice"),
    [
        ("names", find_names, "name a variable for its content"),
        ("participles", find_participles, "name a function by a verb, such as merge for merged"),
        ("conditions", find_false_conditions, "a name such as is_ready is a condition, so it must return a bool"),
        ("words", find_words, "use the words of docs/internals/glossary.md"),
    ],
)
def test_clean_packages_use_the_words_of_the_field(section: str, find: Rule, advice: str) -> None:
    paths = [path for package in CLEAN for path in sorted((PACKAGE / package).rglob("*.py"))]
    lines_by_path = {path.relative_to(PACKAGE).as_posix(): find(path.read_text(encoding="utf-8")) for path in paths}
    violations = {name: lines for name, lines in lines_by_path.items() if lines}
    exceptions = set(allowed(section))
    unexpected = [f"{name} {line}" for name, lines in violations.items() for line in lines if name not in exceptions]
    assert not unexpected, "\n".join([f"{advice}:", *unexpected])
    assert not exceptions - set(violations), f"allowed.toml has files in [{section}] that need no exception"
