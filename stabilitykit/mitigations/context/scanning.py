"""One pass over the characters of a text: its words, their stems, and what each message is made of.

A form met a second time costs a look into a cache, a stem a look into a table; both go by hashes of 63 bits under a
seed of the process, so that nobody can make words collide on purpose. What the pass cannot do it asks for by its
result: what is known of a character, more room, or what is known of a word whose lower case is not that of its letters.
"""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_i4
from stabilitykit.mitigations.context.porter import stemmed

__all__: list[str] = []

KINDS = ("i8", "u4", "i4", "i8", "u2", "u4", "i8", "i8", "i8", "i4")
"""Kind of each block of ``scan``."""

# Kinds of characters.
UNKNOWN, SPACE, MARK, CJK_MARK, CJK, LETTER = range(6)

# A letter: the same in lower case, a character of 21 bits, and what else there is to it.
LOWER = (1 << 21) - 1
CAPITAL, DIGIT, ODD = (1 << k for k in range(21, 24))
"""``ODD``: its lower case depends on its neighbours, is more than one character, or is ASCII where it is not itself."""

# What is known of a word.
NAME, NUMBER, FIRST, SECOND, ASKS, ENDS, IS_CJK, CLOSES, STOPS = (1 << k for k in range(9))
"""A capital, a digit in front; first and second person; a question mark, an end of a sentence; a CJK character; the end
of a message; a stop word."""

# What is counted of a message, a column each.
TOKENS, WORDS, STEMS, NEW, NAMES, NUMBERS, FIRSTS, SECONDS, QUESTIONS, SENTENCES, CHARACTERS = range(11)
COLUMNS = 11

# Words of the state, between the calls of one reading.
(
    AT, SIZE, IS_KEPT, MESSAGE, MESSAGES, SAID, AFTER_END, KNOWN, LISTED, SLOTS, FORMS, SEED, UPTO, IS_TOLD, KEY, COST,
    FLAGS,
) = range(17)  # fmt: skip
STATE = 17
DONE, LEARN, GROW, LOOK = range(4)
"""Results of ``scan``."""

CJK_TERM = 1 << 30
"""Added to the stem of a CJK character where a query is read."""
SPECIALS = 512
"""Rows of the table of words with a meaning of their own."""
_FLAG_BITS, _COST_BITS = 8, 28
_MASK = (1 << 63) - 1
_FACTOR = 0x2545_F491_4F6C_DD1D


@kernel
def mixed(key: int, character: int) -> int:
    """Go on with a hash; its high bits depend on all that went in."""
    return ((key ^ character) * _FACTOR) & _MASK


@kernel
def hashed(seed: int, text: Block, start: int, end: int) -> int:
    """Hash a word."""
    key = seed
    for k in range(start, end):
        key = mixed(key, text[k])
    return key


@kernel
def special(key: int, specials: Block) -> int:
    """Give the row of a word in the table of those with a meaning of their own: its own, or a free one."""
    row = (key >> 32) & (SPECIALS - 1)
    while specials[2 * row] != 0 and specials[2 * row] != key:
        row = (row + 1) & (SPECIALS - 1)
    return row


@kernel
def slot_of(key: int, mask: int, hashes: Block, slots: Block) -> int:
    """Give the slot of a stem: its own, or a free one."""
    slot = (key >> 32) & mask
    while slots[slot] != 0 and hashes[slots[slot] - 1] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def look_at_sign(text: Block, at: int, kind: int, seed: int, specials: Block) -> tuple[int, int, int]:
    """Give the key of the stem (-1: none), the tokens and the flags of a single sign."""
    key = mixed(seed, text[at])
    flags = specials[2 * special(key, specials) + 1]
    if kind != MARK:
        flags = flags | IS_CJK
    return key if kind == CJK else -1, 0 if text[at] == 0 else 1, flags


@kernel
def is_odd(text: Block, start: int, end: int, letters: Block) -> bool:
    """Tell whether a word has a letter whose lower case no table gives."""
    found = 0
    for k in range(start, end):
        found = found | letters[text[k]]
    return found & ODD != 0


@kernel
def look_at_word(
    text: Block, start: int, end: int, is_ascii: bool, seed: int, letters: Block, specials: Block, rules: Block
) -> tuple[int, int, int]:
    """Give the same of a word, and leave its stem in its place."""
    size, digits, first = end - start, 0, letters[text[start]]
    flags = NUMBER if first & DIGIT else NAME if first & CAPITAL else 0
    for k in range(start, end):
        letter = letters[text[k]]
        text[k] = letter & LOWER
        if letter & DIGIT:
            digits += 1
    tokens = 1 + (size - 1) // (8 if is_ascii and digits < size else 3)
    key = hashed(seed, text, start, end)
    flags = flags | specials[2 * special(key, specials) + 1]
    if flags & FIRST:
        flags = flags & ~NAME
    if flags & STOPS:
        return -1, tokens, flags & ~STOPS
    if is_ascii:
        key = hashed(seed, text, start, stemmed(text, start, end, rules))
    return key, tokens, flags


@kernel
def stem_number(key: int, state: Block, hashes: Block, slots: Block) -> int:
    """Give the number of a stem, -1 for one that is not known and not to be taken in."""
    if key < 0:
        return -1
    slot = slot_of(key, state[SLOTS], hashes, slots)
    number = slots[slot] - 1
    if number < 0 and state[IS_KEPT]:
        number = state[KNOWN]
        hashes[number] = key
        slots[slot] = number + 1
        state[KNOWN] = number + 1
    return number


@kernel
def word_at(text: Block, at: int, size: int, seed: int, classes: Block) -> tuple[int, int, int, int]:
    """Give the end of the word or sign at a place, its hash, all bits of its characters, and the kind behind it."""
    kind, widest = classes[text[at]], text[at]
    key, behind = mixed(seed, text[at]), kind
    at += 1
    while kind == LETTER and at < size:
        behind = classes[text[at]]
        if behind != LETTER:
            break
        key, widest = mixed(key, text[at]), widest | text[at]
        at += 1
    return at, key, widest, behind


@kernel
def remember(
    forms: Block, form: int, key: int, root: int, cost: int, flags: int, state: Block, hashes: Block, slots: Block
) -> bool:
    """Write what is known of a form into the cache; tells whether its stem is new."""
    known = state[KNOWN]
    stem = stem_number(root, state, hashes, slots)
    forms[form], forms[form + 1] = key, ((((stem + 1) << _COST_BITS) | cost) << _FLAG_BITS) | flags
    return state[KNOWN] > known


@kernel
def count(row: Block, flags: int, cost: int, stem: int, is_new: bool, is_after_end: int) -> None:
    """Add a word to its message."""
    row[WORDS] += 1
    row[TOKENS] += cost
    if stem >= 0:
        row[STEMS] += 1
        if is_new:
            row[NEW] += 1
    if flags == 0:
        return
    if flags & NAME and not is_after_end:  # a capital at the start of a sentence is only spelling
        row[NAMES] += 1
    if flags & NUMBER:
        row[NUMBERS] += 1
    if flags & FIRST:
        row[FIRSTS] += 1
    if flags & SECOND:
        row[SECONDS] += 1
    if flags & ASKS:
        row[QUESTIONS] += 1
    if flags & ENDS:
        row[SENTENCES] += 1
    if flags & IS_CJK:
        row[CHARACTERS] += 1


@kernel
def list_stems(state: Block, hashes: Block, slots: Block) -> None:
    """Put the stems into slots that are new."""
    for k in range(state[LISTED], state[KNOWN]):
        slots[slot_of(hashes[k], state[SLOTS], hashes, slots)] = k + 1
    state[LISTED] = state[KNOWN]


@kernel
def scan(
    state: Block, text: Block, out: Block, forms: Block, classes: Block, letters: Block, specials: Block,
    rules: Block, hashes: Block, slots: Block,
) -> int:  # fmt: skip
    """Read on from where the last call stopped.

    ``state``: the words named above; all of a reading that the calls share. ``text``: its characters, which are
    overwritten. ``out``: a row of counts a message, then the stem of every word, -1 for marks and stop words.
    ``forms``: the cache, pairs of a hash and all that is known of the form, as many as a power of two. ``classes``,
    ``letters``: the kind of every character there is; what there is to it if it is a letter. ``specials``, ``rules``:
    words with a meaning of their own; the rules of ``stemmed``. ``hashes``, ``slots``: of each stem its hash; the
    stems by hash, twice as many slots, a power of two.
    """
    list_stems(state, hashes, slots)
    words, seed, size = offset_i4(out, state[MESSAGES] * COLUMNS), state[SEED], state[SIZE]
    at, said, after_end, message = state[AT], state[SAID], state[AFTER_END], state[MESSAGE]
    result = DONE
    while at < size:
        if state[IS_KEPT] and 2 * state[KNOWN] > state[SLOTS]:
            result = GROW
            break
        kind, start, is_new = classes[text[at]], at, False
        if kind == SPACE:
            at += 1
            continue
        at, key, widest, behind = word_at(text, start, size, seed, classes)
        if kind == UNKNOWN or behind == UNKNOWN:
            state[UPTO] = start if kind == UNKNOWN else at
            at, result = start, LEARN
            break
        form = 2 * ((key >> 32) & state[FORMS])
        if forms[form] != key:
            if kind != LETTER:
                root, cost, flags = look_at_sign(text, start, kind, seed, specials)
            elif widest < 128 or not is_odd(text, start, at, letters):
                root, cost, flags = look_at_word(text, start, at, widest < 128, seed, letters, specials, rules)
            elif state[IS_TOLD]:
                root, cost, flags = state[KEY], state[COST], state[FLAGS]
                state[IS_TOLD] = 0
            else:
                state[UPTO] = at
                at, result = start, LOOK
                break
            is_new = remember(forms, form, key, root, cost, flags, state, hashes, slots)
        facts = forms[form + 1]
        flags, cost = facts & ((1 << _FLAG_BITS) - 1), (facts >> _FLAG_BITS) & ((1 << _COST_BITS) - 1)
        stem = (facts >> (_FLAG_BITS + _COST_BITS)) - 1
        words[said] = stem + CJK_TERM if stem >= 0 and flags & IS_CJK and not state[IS_KEPT] else stem
        said += 1
        if state[IS_KEPT]:
            count(offset_i4(out, message * COLUMNS), flags, cost, stem, is_new, after_end)
            message += 1 if flags & CLOSES else 0
            after_end = flags & (ENDS | CLOSES)
    state[AT], state[SAID], state[AFTER_END], state[MESSAGE] = at, said, after_end, message
    return result
