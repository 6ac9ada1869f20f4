"""Type-correct expressions and steps of the language as source text, so that parser and checker are used as well."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from curatec.compiler.fields import FIELDS, OUTCOMES, ROLES
from curatec.compiler.types import Level, Type

B, I, F, T, TS = Type.BOOL, Type.INT, Type.FLOAT, Type.TEXT, Type.TEXTS  # noqa: E741
OUTER = {Level.TURN: (Level.TRAJECTORY,), Level.CALL: (Level.TRAJECTORY, Level.TURN), Level.TOOL: (Level.TRAJECTORY,)}
LITERALS = {
    B: ("true", "false"),
    I: ("0", "1", "2", "3", "(-1)", "10"),
    F: ("0.5", "0.1", "(-2.5)", "10%", "1_000.25", "0.0"),
    T: ('""', '"a"', '"ok"', '"order W12"', '"é"', '"東京 5"', 'r"\\d"', '"search"', '"1"'),
    TS: ('["a", "ok"]', '["search"]'),
}
PATTERNS = (r"[0-9]+", r"^o", r"(k|b)$", r"\bW(\d+)", r"(?i)error", r"[^a-z ]", r"x*", r"(a)|(b)", r"\S\s")
META = ("meta.n", "meta.user_id", "meta.flag", "meta.tags[0]", "meta.tags[1].k", "meta.zz", 'meta["n"]')
ARGS = ("args.x", 'args["x-y"]', "args.y.z[1]", "args.y", "args.zz")
COMPARE = ("==", "!=", "<", "<=", ">", ">=")


@dataclass
class Place:
    """Where an expression is written: its level, what may stand there, how deep it may still go."""

    draw: st.DrawFn
    level: Level
    depth: int
    windows: bool = False
    derived: dict[str, Type] = field(default_factory=dict)
    tagged: bool = False

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def deeper(self) -> Place:
        return replace(self, depth=self.depth - 1)

    # ---- names ----

    def names(self, type_: Type) -> list[str]:
        # These are compared with words of their own only, and have cases of their own below.
        hidden = {"outcome", "role", "source", *(() if self.tagged else ("failure",))}
        found = [name for name, f in FIELDS[self.level].items() if f.type is type_ and name not in hidden]
        if self.level is Level.TURN:
            for via in ("prev", "next", "caller", "reply"):
                found += [f"{via}.{n}" for n, f in FIELDS[Level.TURN].items() if f.type is type_ and n not in hidden]
        for outer in OUTER.get(self.level, ()):
            found += [f"{outer}.{n}" for n, f in FIELDS[outer].items() if f.type is type_ and n not in hidden]
        prefix = "" if self.level is Level.TRAJECTORY else "trajectory."
        return found + [prefix + name for name, t in self.derived.items() if t is type_]

    def path(self) -> str:
        if self.level is Level.CALL and self.draw(st.booleans()):
            return self.pick(*ARGS)
        return ("" if self.level is Level.TRAJECTORY else "trajectory.") + self.pick(*META)

    def leaf(self, type_: Type) -> str:
        names = self.names(type_)
        if names and self.draw(st.integers(0, 3)):
            return self.pick(*names)
        return self.pick(*LITERALS[type_])

    def key(self, *types: Type) -> str:
        """Something that can group or order rows: no constant."""
        type_ = self.draw(st.sampled_from(types))
        text = self.of(type_)
        return self.pick(*self.names(type_)) if text.strip("(-)") in {t.strip("(-)") for t in LITERALS[type_]} else text

    # ---- expressions ----

    def of(self, type_: Type) -> str:
        if self.depth <= 0:
            return self.leaf(type_)
        make = {B: self.bool, I: self.int, F: self.float, T: self.text, TS: lambda: self.leaf(TS)}[type_]
        return make()

    def number(self) -> str:
        return self.of(self.draw(st.sampled_from([I, F])))

    def inside(self, over: str, type_: Type) -> str:
        level = Level.TURN if over == "turns" else Level.CALL
        return replace(self, level=level, depth=self.depth - 1, windows=False).of(type_)

    def collection(self) -> str | None:
        return {Level.TRAJECTORY: self.pick("turns", "calls"), Level.TURN: "calls"}.get(self.level)

    def condition(self, over: str) -> str:
        return f"{over} where {self.inside(over, B)}" if self.draw(st.integers(0, 4)) else over

    def picked(self, type_: Type) -> str | None:
        """`first(turns where …).content`."""
        over = self.collection()
        if over is None:
            return None
        level = Level.TURN if over == "turns" else Level.CALL
        names = [n for n, f in FIELDS[level].items() if f.type is type_ and n not in ("role", "source")]
        if type_ is T and level is Level.CALL:
            names += ["args.x", "args.y"]
        return f"{self.pick('first', 'last')}({self.condition(over)}).{self.pick(*names)}" if names else None

    def window(self, *shapes: str) -> str:
        below = replace(self, depth=min(self.depth - 1, 1), windows=False)
        keys = ", ".join(below.key(T, B, I, T) for _ in range(self.draw(st.integers(1, 2))))
        shape = self.pick(*shapes)
        inner = below.of({"share": B}.get(shape, I if shape.startswith("int ") else self.draw(st.sampled_from([I, F]))))
        if shape == "rank":
            inner = below.of(self.draw(st.sampled_from([I, F, T]))) + self.pick("", " desc")
        return f"{shape.removeprefix('int ')}({'' if shape == 'count' else inner}) over ({keys})"

    def bool(self) -> str:
        d, draw = self.deeper(), self.draw
        match draw(st.integers(0, 15)):
            case 0 | 1:
                return f"({d.of(B)} {self.pick('and', 'or')} {d.of(B)})"
            case 2:
                return f"(not {d.of(B)})"
            case 3 | 4:
                return f"({d.number()} {self.pick(*COMPARE)} {d.number()})"
            case 5:
                return f"({d.of(T)} {self.pick(*COMPARE)} {d.of(T)})"
            case 6:
                return f"({d.number()} between {d.number()} and {d.number()})"
            case 7:
                values = ", ".join(draw(st.lists(st.sampled_from(LITERALS[T]), min_size=1, max_size=3)))
                return f"({d.of(T)} {self.pick('in', 'not in')} {{{values}}})"
            case 8:
                return f"({d.of(draw(st.sampled_from([B, I, F, T, TS])))} {self.pick('is null', 'is not null')})"
            case 9:
                what = self.pick(d.of(T), d.of(TS) if self.level is Level.TRAJECTORY else d.of(T), self.path())
                return f"({what} {self.pick('is empty', 'is not empty', 'is null', 'is not null')})"
            case 10:
                return f'({d.of(T)} {self.pick("~", "!~")} r"{self.pick(*PATTERNS)}")'
            case 11:
                return f"{self.pick('contains', 'starts_with', 'ends_with')}({d.of(T)}, {d.of(T)})"
            case 12:
                other = self.pick("1", "2.5", '"5"', '"u1"', "true", d.of(T), d.of(F))
                operator = self.pick("==", "!=") if other == "true" else self.pick(*COMPARE)
                return f"({self.path()} {operator} {other})"
            case 13 if self.level is Level.TRAJECTORY:
                time = self.pick('"2026-01-01"', '"1970-01-01T01:00:00+01:00"')
                return self.pick(f"has({d.of(TS)}, {d.of(T)})", f"(started_at {self.pick(*COMPARE)} {time})")
            case 14 if self.level is Level.TURN:
                word = self.pick(*ROLES, *(() if draw(st.booleans()) else ("user", "tool")))
                beside = f'({self.pick("prev", "next")}.role != "{word}")'
                return self.pick(f'(role == "{word}")', "(calls is empty)", beside)
            case 15 if self.level is Level.TRAJECTORY:
                operator = self.pick("==", "!=")
                return self.pick(f'(outcome {operator} "{self.pick(*OUTCOMES)}")', f'(source {operator} "first")')
        over = self.collection()
        return f"{self.pick('any', 'all', 'none')}({self.condition(over)})" if over else d.of(B)

    def int(self) -> str:
        d = self.deeper()
        over = self.collection()
        match self.draw(st.integers(0, 8)):
            case 0 | 1:
                return f"({d.of(I)} {self.pick('+', '-', '*')} {d.of(I)})"
            case 2:
                return f"length({d.of(self.draw(st.sampled_from([T, TS])) if self.level is Level.TRAJECTORY else T)})"
            case 3 if over:
                return f"count({self.condition(over)})"
            case 4:
                return f"({self.pick(d.of(T), d.of(F), self.path())} as int)"
            case 5:
                return f"{self.pick('coalesce', 'least', 'greatest')}({d.of(I)}, {d.of(I)})"
            case 6:
                return f"(if {d.of(B)} then {d.of(I)} else {d.of(I)})"
            case 7 if self.windows:
                return self.window("count", "rank", "int sum", "int min", "int max")
            case 8:
                return self.picked(I) or f"abs({d.of(I)})"
        return f"(-{d.of(I)})"

    def float(self) -> str:
        d = self.deeper()
        match self.draw(st.integers(0, 8)):
            case 0 | 1 | 2:
                return f"({d.number()} {self.pick('+', '-', '*', '/', '/', '**')} {d.of(F)})"
            case 3:
                return f"{self.pick('ln', 'sqrt', 'round', 'abs')}({self.pick(d.of(F), self.path())})"
            case 4:
                return f"{self.pick('least', 'greatest', 'coalesce')}({d.number()}, {d.of(F)})"
            case 5:
                return f"({d.of(T)} as float)"
            case 6:
                return f"({self.path()} + {d.of(F)})"
            case 7 if self.windows:
                return self.window("sum", "mean", "std", "min", "max", "median", "share")
        return f"(if {d.of(B)} then {d.number()} else {d.of(F)})"

    def text(self) -> str:
        d = self.deeper()
        match self.draw(st.integers(0, 11)):
            case 0:
                turn = self.pick("role", "prev.role", "next.role")
                word = {Level.TRAJECTORY: self.pick("outcome", "source"), Level.TURN: turn}.get(self.level, d.of(T))
                return f"{self.pick('lower', 'trim')}({self.pick(d.of(T), d.of(T), word)})"
            case 1:
                return f"slice({d.of(T)}, {d.of(I)}" + self.pick(")", f", {d.of(I)})")
            case 2:
                keep = self.pick("", ", keep: end", ', keep: ends, marker: "…"', ', marker: "…"')
                return f"truncate({d.of(T)}, {d.of(I)}{keep})"
            case 3:
                return f"concat({d.of(T)}, {self.pick(d.of(T), self.path(), 'null')})"
            case 4:
                return f'extract({d.of(T)}, r"{self.pick(*PATTERNS)}")'
            case 5:
                return f'replace({d.of(T)}, r"{self.pick(*PATTERNS)}", "{self.pick("", "-", "<${0}>", "$$")}")'
            case 6 if self.level is Level.TRAJECTORY:
                return f'join({d.of(TS)}, "{self.pick("", "+")}")'
            case 7:
                return f"({d.of(self.draw(st.sampled_from([I, B])))} as text)"
            case 8:
                return f"coalesce({self.path()}, {d.of(T)})"
            case 9:
                return f"(if {d.of(B)} then {d.of(T)} else {self.pick(d.of(T), 'null')})"
        return self.picked(T) or d.leaf(T)


@st.composite
def expressions(draw: st.DrawFn, level: Level = Level.TRAJECTORY, depth: int = 3, windows: bool = False) -> str:
    type_ = draw(st.sampled_from([B, B, I, F, T]))
    return Place(draw, level, depth, windows and level is Level.TRAJECTORY).of(type_)


# ---- steps ----

FAMILIES = "failure late { when turn_count > 2 }\nfailure wrong { when any(calls where is_error) or reward < 0.3 }\n"


@dataclass
class Steps:
    """Writes steps in order; knows which columns exist."""

    draw: st.DrawFn
    derived: dict[str, Type] = field(default_factory=dict)
    tagged: bool = False
    decomposed: bool = False
    names: list[str] = field(default_factory=list)

    def place(self, level: Level = Level.TRAJECTORY, depth: int = 2) -> Place:
        return Place(self.draw, level, depth, level is Level.TRAJECTORY, self.derived, self.tagged)

    def keys(self) -> str:
        return ", ".join(self.place(depth=1).key(T, T, I, B) for _ in range(self.draw(st.integers(1, 2))))

    def orders(self) -> str:
        made = [self.place(depth=1).key(I, F, T, B) for _ in range(self.draw(st.integers(1, 2)))]
        return ", ".join(text + self.draw(st.sampled_from(["", " desc"])) for text in made)

    def step(self, label: str) -> str:
        draw, place = self.draw, self.place()
        match draw(st.integers(0, 15)):
            case 15:
                over = place.pick("", f" over ({self.keys()})")
                likeness, best = place.pick("0.4", "0.75", "1"), place.pick("", f" best by {self.orders()}")
                return f"dedup near on {place.pick('text', 'task_text', place.of(T))} threshold {likeness}{over}{best}"
            case 14 if not self.decomposed:
                self.decomposed = True
                items = place.pick("", "task", "system, task, last 1 results", 'task, last 2 results, elide "…"')
                context = f" context {{ {items} }}" if items else ""
                return f"decompose at {self.place(Level.TURN).of(B)}{context}"
            case 0 | 1:
                return f"{place.pick('keep', 'drop')} where {place.of(B)}"
            case 11:
                return f"limit {place.pick('1', '2')} per each tool_names order by {self.orders()}"
            case 12:
                shares = place.pick("first 50% second 50%", "first 30% second 70%", "first 100% second 0%")
                return f"mix {{ {shares} }}{place.pick('', '', ' to 2', ' to at most 3', ' to at most 1')}"
            case 13:
                turn = self.place(Level.TURN)
                side, pick, repair = turn.pick("after", "before"), turn.pick("first", "last"), turn.pick(" repair", "")
                return f"turns cut {side} {pick} where {turn.of(B)}{repair}"
            case 2:
                turn = self.place(Level.TURN)
                return f"turns {turn.pick('keep', 'drop')} where {turn.of(B)}{turn.pick(' repair', ' repair', '')}"
            case 3:
                turn = self.place(Level.TURN)
                where = turn.pick("", f" where {turn.of(B)}")
                return f"turns set {turn.pick('content', 'reasoning')} = {turn.pick(turn.of(T), 'null')}{where}"
            case 4:
                tool = self.place(Level.TOOL)
                return f"tools {tool.pick('keep', 'drop')} where {tool.pick('used', tool.of(B))}"
            case 5:
                return f"dedup exact on {self.keys()}" + place.pick("", f" best by {self.orders()}")
            case 6:
                return f"limit {place.pick('1', '2')} per {self.keys()} order by {self.orders()}"
            case 7:
                per = place.pick("", f" per {self.keys()}")
                return f"sample {place.pick('1', '3', '50%', '90%', '0')}{per} seed {place.pick('1', '7')}"
            case 8 if not self.tagged:
                self.tagged = True
                return "tag failure"
            case 9:
                return f"sort by {self.orders()}"
        type_ = draw(st.sampled_from([B, I, F, T]))
        text = f"derive {label}_v = {place.of(type_)}"
        self.derived = {**self.derived, f"{label}_v": type_}
        return text

    def steps(self, prefix: str, most: int) -> list[str]:
        return [f"{prefix}{i}: {self.step(f'{prefix}{i}')}" for i in range(self.draw(st.integers(0, most)))]


@st.composite
def strategies(draw: st.DrawFn) -> str:
    """A whole spec: shared steps, two sinks with steps of their own."""
    shared = Steps(draw)
    near = draw(st.sampled_from(["", " near task_text 0.5", " near text 0.9"]))
    split = draw(st.sampled_from(["", "", f"cut: split by task{near} {{ train 60% validation 40% }} seed 3"]))
    view = draw(st.sampled_from(["", "", "view user", "view agent"]))
    body = [split, view, *shared.steps("s", 3)]
    sinks = [Steps(draw, shared.derived, shared.tagged, shared.decomposed) for _ in range(2)]
    body += ["emit sft {", *sinks[0].steps("a", 2), "}", "emit rl {", *sinks[1].steps("b", 2), "}"]
    lines = "\n  ".join(filter(None, body))
    sources = 'source first { path "first.jsonl" }\nsource second { path "second.jsonl" }\n'
    return f"curate 1\n{sources}{FAMILIES}strategy s {{\n  from first, second\n  {lines}\n}}\n"
