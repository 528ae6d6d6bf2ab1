from __future__ import annotations

import io
from http.client import IncompleteRead

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import metrics
from stabilitykit import Engine
from stabilitykit.errors import TurnError
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.prometheus import PageReader
from stabilitykit.sources.prometheus.groups import MAX_OWNERS
from stabilitykit.sources.prometheus.lines import MAX_BYTES, MAX_LINE, MAX_WANTED
from stabilitykit.sources.prometheus.names import TABLE, used_metrics

# Worked out by hand from each file. Cache hit rates of -1.0 mean nothing; an older name beside its newer one is not
# read; rates, means and hit ratios need a second page, unless the server publishes a gauge of them.
FIRST_PAGES = {
    "llamacpp_2025": {"r1": {"running_requests": 0.0, "waiting_requests": 0.0}},
    "mindie_unprefixed": {"r1": {"running_requests": 0.0, "preemptions_count": 0.0}},
    "sglang_2024_percent_hit_rate": {
        "r1": {
            "kv_usage_ratio": 0.0,
            "running_requests": 0.0,
            "waiting_requests": 0.0,
            "prefix_hit_ratio": 0.8758777633289988,
            "generated_tokens_per_s": 0.0,
        }
    },
    "sglang_deepseek_r1_dp_ranks_skewed": {
        "r1/dp_rank=0": {"generated_tokens_per_s": 35.423840583853774},
        "r1/dp_rank=1": {"waiting_requests": 0.0},
        "r1/dp_rank=2": {"generated_tokens_per_s": 35.41880810293355},
        "r1/dp_rank=3": {"generated_tokens_per_s": 141.7546862896204, "waiting_requests": 0.0},
        "r1/dp_rank=4": {"generated_tokens_per_s": 141.74408727960696},
        "r1/dp_rank=5": {"generated_tokens_per_s": 140.76470568188876},
        "r1/dp_rank=6": {"generated_tokens_per_s": 35.442541417324875},
        "r1/dp_rank=7": {"generated_tokens_per_s": 35.43700884115304},
    },
    "sglang_overloaded_2826_queued": {
        "r1": {
            "kv_usage_ratio": 0.28,
            "kv_used_tokens": 123859.0,
            "running_requests": 162.0,
            "waiting_requests": 2826.0,
            "prefix_hit_ratio": 0.007507552643049313,
            "generated_tokens_per_s": 86.50814177726902,
        }
    },
    "tgis_on_vllm_0_4_truncated": {"r1": {"running_requests": 0.0, "waiting_requests": 0.0}},
    "trtllm_deepseek_v3_pytrtllm": {"r1": {"running_requests": 1.0, "waiting_requests": 0.0}},
    "vllm_0_10_deprecated_pairs": {"r1": {"kv_usage_ratio": 9.75010481363281e-06}},
    "vllm_0_6_cpu_like_sentinels": {
        "r1": {
            "kv_usage_ratio": 0.0,
            "running_requests": 0.0,
            "waiting_requests": 0.0,
            "preemptions_count": 0.0,
            "kv_used_tokens": 0.0,
        }
    },
    "vllm_v0_and_v1_names": {
        "r1": {
            "kv_usage_ratio": 0.0,
            "running_requests": 0.0,
            "waiting_requests": 0.0,
            "preemptions_count": 0.0,
            "generated_tokens_per_s": 0.0,
            "kv_used_tokens": 0.0,
        }
    },
}
# Ten seconds later these counters had grown, by hand: the old text, the new one.
SECOND_PAGES = {
    "llamacpp_2025": (
        [("predicted_total 7801", "predicted_total 8101"), ("seconds_total 279.178", "seconds_total 291.178")],
        {"generated_tokens_per_s": 30.0, "mean_itl_ms": 40.0},
    ),
    "mindie_unprefixed": (
        [('mindie"} 578', 'mindie"} 828')],
        {"generated_tokens_per_s": 25.0},
    ),
    "sglang_overloaded_2826_queued": (
        [
            ("7.557572e+06", "7558572"),
            ("2.3518979474117756e+06", "2351987.9474117756"),  # 90 s of first tokens
            ('8B-Instruct"} 11008.0\n# HELP sglang:e2e', '8B-Instruct"} 11011.0\n# HELP sglang:e2e'),
            ("866964.5791549598", "867014.5791549598"),  # 50 s of gaps
            ('8B-Instruct"} 7.400757e+06\n# HELP sglang:num_run', '8B-Instruct"} 7401757\n# HELP sglang:num_run'),
        ],
        {"generated_tokens_per_s": 100.0, "mean_ttft_ms": 30_000.0, "mean_itl_ms": 50.0},
    ),
    "trtllm_deepseek_v3_pytrtllm": ([("81896.0", "81946.0")], {"generated_tokens_per_s": 5.0}),
    "vllm_v0_and_v1_names": (
        [
            ('generation_tokens_total{model_name="facebook/opt-125m"} 7.0', "generation_tokens_total 27"),  # no label
            ("0.31326723098754883", "1.31326723098754883"),
            ('first_token_seconds_count{model_name="facebook/opt-125m"} 1.0', "first_token_seconds_count 5"),
            ("0.19016313552856445", "0.59016313552856445"),
            ('output_token_seconds_count{model_name="facebook/opt-125m"} 6.0', "output_token_seconds_count 26"),
            ('cache_queries_total{model_name="facebook/opt-125m"} 117.0', "cache_queries_total 217"),
            ('cache_hits_total{model_name="facebook/opt-125m"} 64.0', "cache_hits_total 144"),
        ],
        {"generated_tokens_per_s": 2.0, "mean_ttft_ms": 250.0, "mean_itl_ms": 20.0, "prefix_hit_ratio": 0.8},
    ),
    "vllm_0_10_deprecated_pairs": (
        [('zai-org/GLM-4.5"} 32.0', 'zai-org/GLM-4.5"} 64.0'), ('GLM-4.5"} 0.0', 'GLM-4.5"} 16.0')],
        {"prefix_hit_ratio": 0.5},  # hits under the older name, queries under the newer: one pair all the same
    ),
}
ENGINE = Engine.load("base")


def told(samples):
    """Give the signals of each replica."""
    return {s.replica: dict(s.signals) for s in samples}


@pytest.mark.capability("issue 4 §2: every real page of shared/data/prometheus gives the right signals in their units")
@pytest.mark.parametrize("name", FIRST_PAGES)
def test_first_page(name, shared_data):
    """Each real page, read alone."""
    reader = PageReader(replica="r1")
    assert told(reader.read((shared_data / "prometheus" / f"{name}.prom").read_bytes(), 0.0)) == FIRST_PAGES[name]
    assert not reader.problems


def test_every_page_was_worked_out(shared_data):
    """No page of the folder is left out."""
    assert {p.stem for p in (shared_data / "prometheus").glob("*.prom")} == set(FIRST_PAGES)


@pytest.mark.capability("issue 4 §2: counters become rates, means and hit ratios of the interval between two pages")
@pytest.mark.parametrize("name", SECOND_PAGES)
def test_second_page(name, shared_data):
    """Ten seconds later the counters of a real page have grown by known amounts."""
    text = (shared_data / "prometheus" / f"{name}.prom").read_text()
    changed, expected = SECOND_PAGES[name]
    reader = PageReader(replica="r1")
    reader.read(text, 100.0)
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    found = told(reader.read(text, 110.0))["r1"]
    assert {signal: found[signal] for signal in expected} == pytest.approx(expected)


def page(**metrics):
    """Write a page of vLLM metrics."""
    return "".join(f"vllm:{name} {value}\n" for name, value in metrics.items())


@pytest.mark.capability("issue 4 §2: a counter that was reset by a restart starts from nothing, counts never fall")
def test_counter_resets():
    """After a restart the rate is what the new server counted, and preemptions go on from where they were."""
    reader = PageReader()
    found = []
    for at, tokens, preempted in ((0.0, 1000, 7), (10.0, 1500, 9), (20.0, 100, 2), (30.0, 300, 3)):
        text = page(generation_tokens_total=tokens, num_preemptions_total=preempted)
        (sample,) = reader.read(text, at)
        found.append((sample.signals.get("generated_tokens_per_s"), sample.signals["preemptions_count"]))
    assert found == [(None, 7.0), (50.0, 9.0), (10.0, 11.0), (20.0, 12.0)]


def test_time_that_does_not_advance():
    """Two pages of one moment, or a clock that went back, have no interval."""
    reader = PageReader()
    for at in (10.0, 10.0, 5.0):
        assert not reader.read(page(generation_tokens_total=5), at)
    (sample,) = reader.read(page(generation_tokens_total=15), 10.0)
    assert sample.signals == {"generated_tokens_per_s": 2.0}


def test_the_clock_is_asked_without_a_time():
    """A sample carries the time of the injected clock."""
    (sample,) = PageReader(clock=lambda: 42.0).read(page(num_requests_running=1))
    assert sample.timestamp_s == 42.0


@pytest.mark.capability("issue 4 §2: sentinels (-1), NaN and infinities are no values; missing is not zero")
@pytest.mark.parametrize(("value", "count"), [("-1.0", 0), ("-1", 0), ("NaN", 1), ("+Inf", 1), ("-Inf", 1)])
def test_no_values(value, count):
    """A sentinel is silently nothing, no number is a problem; the rest of the page stands."""
    reader = PageReader()
    (sample,) = reader.read(page(kv_cache_usage_perc=value, num_requests_waiting=3), 0.0)
    assert sample.signals == {"waiting_requests": 3.0}
    assert reader.problem_count == count
    assert all(p.line == 1 for p in reader.problems)


def test_a_sentinel_does_not_hide_the_older_name():
    """The newest name that has a value is read."""
    (sample,) = PageReader().read(page(kv_cache_usage_perc=-1, gpu_cache_usage_perc=0.5), 0.0)
    assert sample.signals["kv_usage_ratio"] == 0.5


@pytest.mark.capability("issue 4 §2: percent against ratio")
def test_percent_and_ratio():
    """The `perc` of vLLM is a ratio; SGLang's hit rate is a percentage above 1, beside `new_seq`, and ever after."""
    reader = PageReader()
    assert told(reader.read(page(kv_cache_usage_perc=0.5), 0.0))[None] == {"kv_usage_ratio": 0.5}
    assert told(reader.read(page(kv_cache_usage_perc=50), 0.0)) == {}
    assert "outside its domain" in str(reader.problems[0])
    rates = [0.5, 87.5, 0.5]
    read = [told(reader.read(f"sglang:cache_hit_rate {r}\n", 0.0))[None]["prefix_hit_ratio"] for r in rates]
    assert read == [0.5, 0.875, 0.005]
    old = "sglang:new_seq 5\nsglang:cache_hit_rate 0.5\n"
    assert told(PageReader().read(old, 0.0))[None]["prefix_hit_ratio"] == 0.005


@pytest.mark.capability("issue 4 §2: names with underscores for colons, with and without _total")
@pytest.mark.parametrize(
    "name",
    ["sglang:num_retracted_requests_total", "sglang_num_retracted_requests_total", "sglang_num_retracted_requests"],
)
def test_spellings(name):
    """However a page spells it."""
    assert told(PageReader().read(f"{name} 4\n", 0.0)) == {None: {"preemptions_count": 4.0}}


@pytest.mark.capability("issue 4 §2: several models, engines and ranks in one page are several replicas")
def test_several_owners():
    """What tells them apart is in the name; tensor ranks say the same twice; parts are added; facts hold for all."""
    text = """\
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"} 1
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.25
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 2
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="deferred"} 3
sglang:token_usage{model_name="n",tp_rank="0"} 0.7
sglang:token_usage{model_name="n",tp_rank="1"} 0.7
"""
    assert told(PageReader(replica="r1").read(text, 0.0)) == {
        "r1/engine=0/model=m": {"kv_usage_ratio": 0.5, "waiting_requests": 5.0, "kv_used_tokens": 8000.0},
        "r1/engine=1/model=m": {"kv_usage_ratio": 0.25, "kv_used_tokens": 4000.0},
        "r1/model=n": {"kv_usage_ratio": 0.7},
    }


def test_the_name_of_a_rank_stays_when_the_others_are_missing():
    """A page cut after the first rank is still that rank's."""
    ranks = 'sglang:token_usage{dp_rank="0"} 0.1\nsglang:token_usage{dp_rank="1"} 0.2\n'
    reader = PageReader()
    assert set(told(reader.read(ranks, 0.0))) == {"dp_rank=0", "dp_rank=1"}
    assert set(told(reader.read(ranks[: ranks.index("\n") + 1], 1.0))) == {"dp_rank=0"}


@pytest.mark.capability("issue 4 §2: DCGM pages become device samples: memory, SM utilisation, temperature")
def test_dcgm():
    """MiB to a ratio, percent to a ratio, the profiling metric before the coarse one; a GPU shared by pods is one."""
    text = """\
DCGM_FI_DEV_FB_USED{gpu="0",Hostname="h",pod="a"} 18432
DCGM_FI_DEV_FB_USED{gpu="0",Hostname="h",pod="b"} 18432
DCGM_FI_DEV_FB_FREE{gpu="0",Hostname="h"} 5120
DCGM_FI_DEV_FB_RESERVED{gpu="0",Hostname="h"} 1024
DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="h"} 97
DCGM_FI_PROF_SM_ACTIVE{gpu="0",Hostname="h"} 0.61
DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="h"} -3
DCGM_FI_DEV_GPU_UTIL{gpu="1",Hostname="h"} 40
DCGM_FI_DEV_GPU_TEMP{gpu="1",Hostname="h"} 9223372036854775794
"""
    reader = PageReader(device="box")
    found = {s.device: dict(s.signals) for s in reader.read(text, 0.0)}
    assert found == {
        "box/gpu=0": {"gpu_memory_ratio": 0.75, "gpu_sm_ratio": 0.61, "gpu_temperature_c": -3.0},
        "box/gpu=1": {"gpu_sm_ratio": 0.4},
    }
    assert [p.reason for p in reader.problems] == ["gpu_temperature_c: outside its domain"]


def test_other_servers():
    """TGI's prefill by its label in both of its spellings, Triton's blocks, SGLang's page of one token."""
    reader, found = PageReader(), {}
    for at, seconds, count in ((0.0, 10, 100), (1.0, 12, 140)):
        found = told(
            reader.read(
                f'tgi_batch_forward_duration_sum{{method="prefill"}} {seconds}\n'
                f'tgi_batch_forward_duration_count{{method="prefill"}} {count}\n'
                'tgi_batch_forward_duration_sum{method="decode"} 99999\n'
                f"tgi_batch_inference_duration_sum{{method=\"{{'method': 'prefill'}}\"}} {seconds}\n"
                "sglang:page_size 1\n"
                'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="t"} 30\n'
                'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="t"} 64\n',
                at,
            )
        )
    assert found == {None: {"mean_prefill_ms": 50.0, "kv_used_tokens": 1920.0, "kv_fragmentation_ratio": 0.0}}


@pytest.mark.capability("issue 4 §2: a bad page is located problems, never an exception; what can be read is read")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'vllm:num_requests_running{model_name="a 3\n', "no name, labels and value"),
        (b"vllm:num_requests_running\n", "no name, labels and value"),
        (b"vllm:num_requests_running three\n", "no name, labels and value"),
        (b"vllm:num_requests_running 1" + b"0" * 400 + b"\n", "not a finite number"),
        (b'vllm:num_requests_running{model_name="\xff"} 3\n', "not UTF-8"),
        (b"vllm:num_requests_waiting 2\n", "stood on an earlier line"),
        (b"vllm:num_requests_running{a=1} 3\n", "no name, labels and value"),
        (b"vllm:num_requests_running 1.5\n", "outside its domain"),
        (b"vllm:num_requests_running " + b" " * MAX_LINE + b"1\n", "a line of more than"),
    ],
)
def test_bad_lines(bad, reason):
    """One bad line: its number and what is wrong with it; the others stand."""
    reader = PageReader()
    (sample,) = reader.read(b"# TYPE x y\nvllm:num_requests_waiting 2\n" + bad + b"vllm:num_preemptions_total 0\n", 0.0)
    assert sample.signals == {"waiting_requests": 2.0, "preemptions_count": 0.0}
    (problem,) = reader.problems
    assert reason in problem.reason
    assert problem.line in (0, 3)


@pytest.mark.capability("issue 4 §2: a page of 50 MB is read in bounded memory, up to its bound")
def test_great_page():
    """Only the first 16 MiB are read, of a stream as of bytes; what stood there counts."""

    class Endless(io.RawIOBase):
        """Fifty megabytes that are never in memory."""

        def __init__(self):
            self.given = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            line = b"vllm:num_requests_waiting 2\n" if self.given == 0 else b"go_memstats_alloc_bytes 1234567890\n"
            line = line[: len(buffer)] if self.given < 50e6 else b""
            buffer[: len(line)] = line
            self.given += len(line)
            return len(line)

    stream, reader = Endless(), PageReader()
    assert told(reader.read(io.BufferedReader(stream), 0.0)) == {None: {"waiting_requests": 2.0}}
    assert "16 MiB" in reader.problems[-1].reason
    assert stream.given < MAX_BYTES + (1 << 20)


def test_too_many_series_and_owners():
    """Both are bounded; names that grow too long are cut and stay distinct."""
    reader = PageReader(replica="r")
    lines = [f'vllm:num_requests_running{{model_name="{"m" * 200}{k:05}"}} 1\n' for k in range(9_999)]
    text, read = "".join(lines), MAX_WANTED // len(lines[0])
    reader.read(text, 0.0)
    samples = reader.read(text, 1.0)
    assert reader.problem_count == read - MAX_OWNERS + 1
    assert f"line {MAX_OWNERS + 1}: " in str(reader.problems[0])
    assert len({s.replica for s in samples}) == len(samples) == len(reader._counters) == MAX_OWNERS
    ENGINE.observe(replica=samples[0].replica, **samples[0].signals)


def test_many_pages_of_strangers():
    """A target that shows new names on every page does not make the reader grow."""
    reader = PageReader()
    for k in range(3 * MAX_OWNERS):
        (sample,) = reader.read(f'sglang:cache_hit_rate{{model_name="{k}"}} 50\n', float(k))
        assert sample.signals == {"prefix_hit_ratio": 0.5}
    assert len(reader._counters) == len(reader._percent) == MAX_OWNERS


def test_a_page_that_is_cut():
    """The last line of a page that was cut is not read: 12 may have been 1234."""
    reader = PageReader()
    (sample,) = reader.read("vllm:num_requests_running 3\nvllm:num_requests_waiting 12", 0.0)
    assert sample.signals == {"running_requests": 3.0}
    assert reader.problems[0].line == 2


def test_a_stream_that_breaks():
    """What came before it broke is read."""

    class Breaking(io.BytesIO):
        """Gives two lines, then the connection is gone."""

        def readline(self, size=-1, /):
            line = super().readline(size)
            if not line:
                raise ConnectionResetError
            return line

    reader = PageReader()
    assert told(reader.read(Breaking(b"# x\nvllm:num_requests_waiting 2\n"), 0.0)) == {None: {"waiting_requests": 2.0}}
    assert str(reader.problems[0]) == "line 3: the page cannot be read from here on: ConnectionResetError"


def test_a_page_of_something_else():
    """A web page has no metric."""
    reader = PageReader()
    assert reader.read("<!doctype html>\n<p>vllm:num_requests_running</p>\n", 0.0) == []
    assert reader.problems[0].reason == "no metric of a known server on the page"


def test_a_name_that_cannot_work():
    """The host's own names are checked at once."""
    with pytest.raises(TurnError):
        PageReader(replica="r" * 200)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from([n.encode() for n in used_metrics()]).flatmap(
                lambda name: st.binary(max_size=40).map(lambda tail: name + tail)
            ),
        ),
        max_size=20,
    )
)
def test_any_bytes(lines):
    """Whatever a page holds, reading it raises nothing, and what comes out an engine takes."""
    reader, engine = PageReader(), ENGINE
    for at in (0.0, 1.0):
        for sample in reader.read(b"\n".join(lines), at):
            assert all(CATALOGUE[n].lo <= v <= CATALOGUE[n].hi for n, v in sample.signals.items())
            engine.observe(replica=sample.replica, device=sample.device, **sample.signals)


@pytest.mark.capability("issue 4 §2: samples of pages move the engine: queue pressure of a real overloaded server")
def test_observe_into(shared_data):
    """The real page of an overloaded server, ten times, is a warning of its replica."""
    reader, engine = PageReader(replica="r1"), Engine.load("chat")
    text = (shared_data / "prometheus" / "sglang_overloaded_2826_queued.prom").read_bytes()
    decisions = [d for at in range(10) for d in reader.observe_into(engine, text, float(at))]
    decision = decisions[-1]
    assert len(decisions) == 10
    assert not any(d.faults for d in decisions)
    assert decision.state != "healthy"
    assert "replica-saturated" in {m.rule for m in decision.matches}


def test_table_is_sound():
    """Signals are of a replica or a device, and no row stands twice."""
    assert all(CATALOGUE[row.signal].scope in ("replica", "device") for row in TABLE)
    assert len({(row.server, row.signal, row.metrics) for row in TABLE}) == len(TABLE)
    assert all(bool(row.over) == (row.form in ("mean", "share")) for row in TABLE)


@pytest.mark.capability("issue 4 §2: the table of metric names is one, and a page of the reference")
def test_every_metric_is_in_the_reference():
    """The generated page names each metric of the table once or more."""
    page_text = metrics.page()
    assert not [name for name in used_metrics() if f"`{name}`" not in page_text]


class _Cut(io.BytesIO):
    """A stream whose connection ends early."""

    def readline(self, *_):
        """Fail as `http.client` does."""
        raise IncompleteRead(b"")


def test_stream_that_cannot_be_read():
    """A cut connection and a closed stream are located problems."""
    closed = io.BytesIO(b"vllm:num_requests_running 2\n")
    closed.close()
    for stream, name in ((_Cut(), "IncompleteRead"), (closed, "ValueError")):
        reader = PageReader()
        assert reader.read(stream) == []
        assert str(reader.problems[0]) == f"line 1: the page cannot be read from here on: {name}"
