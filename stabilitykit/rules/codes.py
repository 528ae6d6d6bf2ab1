"""The error codes of the rule language, in one sentence each."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CODES"]

CODES: Mapping[str, str] = {
    "SK101": "the file cannot be read, or is not valid YAML",
    "SK102": "the file is not UTF-8, or holds a byte order mark, a control or a bidi character",
    "SK103": "a key stands twice",
    "SK104": "an anchor, alias, tag, merge key or second document",
    "SK105": "a plain value that YAML readers read differently (`no`, `010`, `12:30`, a date): quote it",
    "SK106": "a number that is not finite in float64 or int64",
    "SK107": "the file, a value, the depth or the number of nodes is over its limit",
    "SK201": "an unknown key",
    "SK202": "a key is missing",
    "SK203": "a value of the wrong type",
    "SK204": "`stabilitykit:` is missing, or not a version that this reader has",
    "SK205": "an id or name is badly formed or reserved",
    "SK206": "a value is out of its range (`for`, `count`, a window, `cooldown` …)",
    "SK214": "`for` together with `count`, or `cooldown` without `do`",
    "SK301": "an unknown signal",
    "SK302": "an unknown detector, output or type of detector",
    "SK303": "an unknown param",
    "SK304": "an unknown action or parameter of an action",
    "SK305": "an unknown or disabled rule in `rule:`",
    "SK306": "an unknown function, or the wrong number of arguments",
    "SK307": "rules refer to each other in a circle",
    "SK308": "a name in `reason` that `when` does not read",
    "SK309": "an id is used twice",
    "SK321": "`extends` names no pack, leaves the folder, or goes in a circle",
    "SK322": "a model file that cannot be read, leaves the folder, or does not hold what its detector needs",
    "SK331": "an item clashes with an inherited one and does not say `override: true`",
    "SK332": "an `override` without anything to override",
    "SK401": "a syntax error in a condition or guard",
    "SK402": "a bool used as a number, or a number used as a condition",
    "SK410": "two dimensions meet in `+`, `-`, a comparison, `min` or `max`",
    "SK411": "a literal without the unit it needs, or an unknown unit",
    "SK412": "a number of turns is wanted (`3 turns`), or the wrong word of turns and samples",
    "SK413": "`==` or `!=` on a measured number",
    "SK414": "a comparison that the domain of the signal decides beforehand",
    "SK415": "a condition that reads no signal, detector or rule",
    "SK416": "a word that the enum does not have",
    "SK417": "a param or a parameter of an action is out of its type or range",
    "SK421": "a chained comparison",
    "SK422": "`true` or `false` as a literal in a condition",
    "SK501": "`initial`, `from` or `to` names no state",
    "SK502": "a state that cannot be reached from `initial`",
    "SK503": "a transition that is never taken, because an earlier one always wins",
    "SK504": "a transition without `when` and `after`",
    "SK505": "a transition from a state to itself",
    "SK506": "a guard names a tag that no rule has",
    "SK507": "two states or transitions are alike",
    "SK510": "a reload in which a state vanishes that no other names by `was:`",
    "SK601": "a condition has more than 256 nodes or 16 nested levels",
    "SK602": (
        "more than 2,000 rules, params, signals, detectors or actions; 8,192 comparisons, 2,048 computed terms "
        "or 32,768 parts of conditions; 64 states, 512 transitions or 16,384 parts of guards; guards that unfold "
        "(an `or` of `and`s) into 256 clauses each, 4,096 clauses or 16,384 parts in all"
    ),
    "SK603": "more than 16 levels of `rule:` and `count()`",
    "SK604": (
        "a session's row or vectors are over their limit (16 KiB and 64 KiB; `row_limit` and `vector_limit` of "
        "`Engine.load`)"
    ),
    "SK605": "a template is over its limit, or uses what templates may not",
}
"""As the table on the page of the rule language has them; a test holds the two together."""
