"""The slow obvious twin of kv_aging: lists of everything that ever happened."""

from __future__ import annotations

from stabilitykit.detectors.kv_aging import AGING_MAP

PROBES = 8
MASK = 2**32 - 1
FREE = (0, 0, 0)  # tag, last access, accesses


class NaiveKvAging:
    """Keeps the whole history and reads ages from it."""

    def __init__(self, settings):
        self.method = settings["method"]
        self.window, self.slots = settings["window"], settings["slots"]
        self.lag = max(settings["lag"], self.window)
        self.reset()

    def reset(self):
        """Forget everything."""
        self.idle = None
        self.hits = []
        self.clock = 0
        self.table: list[tuple[int, int, int]] = [FREE] * self.slots

    def update(self, inputs):
        """Take one turn."""
        idle, hits, blocks = (inputs.get(k) for k in ("idle", "hits", "blocks"))
        if hits is not None:
            self.hits.append(hits > 0)
        if idle is not None:
            self.idle = idle
        elif hits is not None:
            self.idle = 0 if self.idle is None or hits > 0 else self.idle + 1
        age, pollution, middle = self.session_age(idle is not None, hits is not None), None, None
        if blocks and self.slots:
            self.clock += 1
            for block in blocks:
                self.touch(block)
            old = [self.block_age(entry) for entry in self.table if entry != FREE]
            pollution = sum(a >= 0.7 for a in old) / len(old)
            middle = sum(0.3 <= a < 0.7 for a in old) / len(old)
            if self.method == "aging_calibrated":
                age = sum(old) / len(old)
        tier = None if age is None else (age >= 0.3) + (age >= 0.7)
        return {"age": age, "tier": tier, "pollution_ratio": pollution, "second_tier_ratio": middle}

    def recency(self):
        """Give min(1, turns since the last hit or the first turn / window)."""
        back = self.hits[::-1]
        since = back.index(True) if True in back else len(back) - 1
        return min(since / self.window, 1.0)

    def count(self, end):
        """Count the hits of the window that ends at a turn."""
        return sum(self.hits[max(end - self.window, 0) : max(end, 0)])

    def session_age(self, is_idle, is_hit):
        """Give the age without block ids."""
        if self.method == "aging_idle":
            return min(self.idle / self.window, 1.0) if is_idle or is_hit else None
        if not is_hit or self.method == "aging_calibrated":
            return None
        if self.method == "recency_age":
            return self.recency()
        now, before = self.count(len(self.hits)), self.count(len(self.hits) - self.lag)
        if before:
            return min(max(1 - now / before, 0.0), 1.0)
        if now:
            return 0.0
        if self.method == "reuse_decay":
            return self.recency()
        return 1.0 if len(self.hits) >= self.window + self.lag else None

    def touch(self, block):
        """Note one access."""
        tag = mixed(block)
        places = [(tag + k) % self.slots for k in range(min(PROBES, self.slots))]
        mine = [s for s in places if self.table[s][0] == tag]
        if mine:
            _, last, accesses = self.table[mine[0]]
            if last != self.clock:
                self.table[mine[0]] = (tag, self.clock, min(accesses + 1, 65535))
        else:
            self.table[min(places, key=lambda s: self.table[s][1])] = (tag, self.clock, 1)

    def block_age(self, entry):
        """Give the age of one block."""
        _, last, accesses = entry
        idle = self.clock - last
        if self.method != "aging_calibrated":
            return min(idle / self.window, 1.0)
        ratio = idle / accesses
        above = [k for k, knot in enumerate(AGING_MAP) if knot > ratio]
        if not above:
            return 1.0
        low, high = AGING_MAP[above[0] - 1], AGING_MAP[above[0]]
        return (above[0] - 1 + (ratio - low) / (high - low)) / (len(AGING_MAP) - 1)


def mixed(block):
    """Mix a block id to 32 bits, not 0."""
    low, high = block & MASK, (block >> 32) & MASK
    tag = low ^ (high * 0x7FEB352D) & MASK
    for _ in range(2):
        tag = ((tag ^ tag >> 16) * 0x045D9F3B) & MASK
    return (tag ^ tag >> 16) or 1
