"""The slow obvious twin of kl_shift: dicts of log-probabilities, cells, sums over cells."""

from __future__ import annotations

import math

import numpy as np

FLOOR = 1e-10
OUTPUTS = ("kl_nats", "lower_nats", "coverage_ratio", "entropy_delta_nats", "overlap_ratio")


class NaiveKlShift:
    """Compares each position's distribution with the last one there was."""

    def __init__(self, settings):
        self.settings = settings
        self.reset()

    def reset(self):
        """Forget the previous distributions."""
        self.previous = {}

    def update(self, inputs):
        """Take one turn."""
        found = [self.position(i, inputs) for i in range(int(self.settings["positions"]))]
        found = [one for one in found if one is not None]
        return {name: sum(one[name] for one in found) / len(found) if found else None for name in OUTPUTS}

    def position(self, i, inputs):
        """Compare one position, None where one side is missing."""
        vocab, direction, mode, end = (self.settings[k] for k in ("vocab_size", "direction", "mode", "end_token"))
        old = self.previous.get(i)
        if mode == "top_k":
            now, compare = self.listed(i, inputs), top_k
        else:
            now, given = (whole(inputs.get(k), vocab, i) for k in ("full_logprobs", "prev_logprobs"))
            compare = full
            if mode == "full_pair" or has_size(inputs.get("prev_logprobs"), vocab, i):
                old = given
        is_over = now is not None and math.exp(probable(now, end)) > 0.5
        if now is None or is_over:
            return None
        self.previous[i] = now
        return None if old is None else compare(now, old, vocab, direction)

    def listed(self, i, inputs):
        """Give the list of a position."""
        tokens, logprobs, k = inputs.get("token_ids"), inputs.get("logprobs"), int(self.settings["k_max"])
        if not tokens or not logprobs or len(tokens) != len(logprobs):
            return None
        return top_list(tokens[i * k : (i + 1) * k], logprobs[i * k : (i + 1) * k], k)


def probable(found, token):
    """Give a token's log-probability, from a list's dict or from a whole distribution."""
    if isinstance(found, dict):
        return found.get(token, -math.inf)
    return found[token] if 0 <= token < len(found) else -math.inf


def float32(values):
    """Give the values as the engine stores them."""
    with np.errstate(over="ignore"):
        return [float(v) for v in np.asarray(values, np.float32)]


def top_list(tokens, logprobs, k_max):
    """Give token -> log-probability, or None for a list that is none."""
    if not tokens or not logprobs or len(tokens) != len(logprobs):
        return None
    pairs = list(zip(tokens, float32(logprobs), strict=True))[:k_max]
    if any(math.isnan(lp) or lp > 0.01 or not 0 <= t < 2**32 for t, lp in pairs):
        return None
    by_token: dict[int, list[float]] = {}
    for token, lp in pairs:
        if lp > -9000:
            by_token.setdefault(token, []).append(lp)
    found = {t: max(lps) + math.log(sum(math.exp(lp - max(lps)) for lp in lps)) for t, lps in by_token.items()}
    return found if 0 < mass_of(found) <= 1.001 else None


def mass_of(listed):
    """Give the probability that a list covers."""
    return math.fsum(math.exp(lp) for lp in listed.values())


def terms(cells, direction):
    """Sum a divergence over cells (how many alike, log q, log p)."""
    total = 0.0
    for count, lq, lp in cells:
        q, p = math.exp(lq), math.exp(lp)
        if direction == "forward":
            total += count * q * (lq - lp)
        elif direction == "reverse":
            total += count * p * (lp - lq)
        elif q + p > 0:
            lm = math.log((q + p) / 2)
            total += count * (q * (lq - lm) + p * (lp - lm)) / 2
    return total


def spread(listed, vocab):
    """Give a whole distribution: the listed tokens, and one log-probability for each other token."""
    unlisted = vocab - len(listed)
    tail = max(1 - mass_of(listed), FLOOR * unlisted)
    mass = mass_of(listed) + tail
    named = {t: lp - math.log(mass) for t, lp in listed.items()}
    return named, math.log(tail / mass / unlisted)


def completed(named, other, vocab, wanted):
    """Name the wanted tokens too: between the least named and an even share; gives the share of the rest as well."""
    missing = wanted - named.keys()
    rest = vocab - len(named) - len(missing)
    tail = (vocab - len(named)) * math.exp(other)
    share = min((other + min(named.values())) / 2, math.log(tail / (len(missing) + 1)))
    if not missing or rest < 1:
        share = other
    left = (tail - math.exp(share) * len(missing)) / rest if rest >= 1 else 1.0
    return named | dict.fromkeys(missing, share), math.log(left)


def entropy(named, other, vocab):
    """Give the entropy of a whole distribution."""
    listed = math.fsum(-math.exp(lp) * lp for lp in named.values())
    return listed - (vocab - len(named)) * math.exp(other) * other


def top_k(now, old, vocab, direction):
    """Compare two lists."""
    vocab = max(vocab, len(now) + len(old))
    (q, q_other), (p, p_other) = spread(now, vocab), spread(old, vocab)
    union = q.keys() | p.keys()
    (all_q, rest_q), (all_p, rest_p) = completed(q, q_other, vocab, union), completed(p, p_other, vocab, union)
    cells = [(1, all_q[t], all_p[t]) for t in union]
    cells.append((vocab - len(union), rest_q, rest_p))
    return {
        "kl_nats": max(terms(cells, direction), 0.0),
        "lower_nats": lower_bound(now, old, direction),
        "coverage_ratio": min(mass_of(now), mass_of(old), 1.0),
        "entropy_delta_nats": entropy(q, q_other, vocab) - entropy(p, p_other, vocab),
        "overlap_ratio": len(now.keys() & old.keys()) / max(len(now), len(old)),
    }


def lower_bound(now, old, direction):
    """Compare the common tokens and one cell of all others, less what rounding can do."""
    common = now.keys() & old.keys()
    cells = [(1, now[t], old[t]) for t in common]
    rest_q = max(1 - sum(math.exp(now[t]) for t in common), 0.0)
    rest_p = max(1 - sum(math.exp(old[t]) for t in common), 0.0)
    if direction == "forward":
        rest_p = min(rest_p + 4e-6, 1.0)
    if direction == "reverse":
        rest_q = min(rest_q + 4e-6, 1.0)
    bound = terms(cells, direction) + rest(rest_q, rest_p, direction)
    return max(bound - 4e-6 * (1 + abs(bound)), 0.0)


def rest(q, p, direction):
    """Give the share of the cell of all others, from probabilities that may be 0."""
    if direction == "forward":
        return q * math.log(q / p) if q > 0 else 0.0
    if direction == "reverse":
        return p * math.log(p / q) if p > 0 else 0.0
    return sum(v * math.log(v / ((q + p) / 2)) for v in (q, p) if v > 0) / 2


def has_size(logprobs, vocab, i):
    """Tell whether whole distributions were given, and one for this position."""
    return logprobs is not None and len(logprobs) % vocab == 0 and len(logprobs) >= (i + 1) * vocab


def whole(logprobs, vocab, i):
    """Give the log-probabilities of the vocabulary at a position, None for what is no distribution."""
    if not has_size(logprobs, vocab, i):
        return None
    values = float32(logprobs[i * vocab : (i + 1) * vocab])
    if any(math.isnan(lp) or lp > 0.01 for lp in values):
        return None
    return values if abs(math.fsum(math.exp(lp) for lp in values) - 1) <= 1e-3 else None


def normal(logprobs, floor=0.0):
    """Give probabilities that sum to 1; what has none gets the floor first."""
    raw = [math.exp(lp) if lp >= -87.3 else floor for lp in logprobs]
    return [p / math.fsum(raw) for p in raw]


def relative_entropy(q, p):
    """Give the sum of q ln(q / p)."""
    return math.fsum(a * math.log(a / b) for a, b in zip(q, p, strict=True) if a > 0)


def full(now, old, vocab, direction):
    """Compare two whole distributions."""
    q, p = normal(now), normal(old)
    if direction == "forward":
        kl = relative_entropy(q, normal(old, FLOOR))
    elif direction == "reverse":
        kl = relative_entropy(p, normal(now, FLOOR))
    else:
        m = [(a + b) / 2 for a, b in zip(q, p, strict=True)]
        kl = (relative_entropy(q, m) + relative_entropy(p, m)) / 2
    mass = min(math.fsum(map(math.exp, side)) for side in (now, old))
    spread_now, spread_old = (math.fsum(-a * math.log(a) for a in side if a > 0) for side in (q, p))
    return {
        "kl_nats": max(kl, 0.0),
        "lower_nats": max(kl, 0.0),
        "coverage_ratio": min(mass, 1.0),
        "entropy_delta_nats": spread_now - spread_old,
        "overlap_ratio": 1.0,
    }
