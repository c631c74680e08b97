"""Any operation, for hypothesis."""

from hypothesis import strategies as st

from jitdb.operators import (
    absent,
    and_,
    anywhere,
    between,
    contains,
    ends_with,
    equal,
    everything,
    fits,
    gt,
    gte,
    includes,
    isin,
    like,
    lt,
    lte,
    matches,
    not_,
    offsets,
    or_,
    seqs,
    starts_with,
)
from jitdb.operators.nodes.compare import FEW

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
keys = st.one_of(
    st.sampled_from(["value", "a", "b", "a.b", "my-key", "", "true", "null", "class", "absent", "ﬁ", "None"]), texts
)
paths = st.lists(keys, min_size=1, max_size=4).map(tuple)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.binary(max_size=8))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=5
)
options = st.sampled_from(
    [
        {},
        {"prefix": 32},
        {"prefix": False},
        {"prefix_offset": 1},
        {"use_map": True},
        {"index_all": True},
        {"index_type": "x", "prefix": True},
        {"index_type": "a'b"},
    ]
)
positions = st.lists(st.integers(0, 2**64 - 1), max_size=5)
leaves = st.one_of(
    st.builds(lambda path, value, options: equal(path, value, **options), paths, values, options),
    st.builds(
        lambda path, value, pluck, options: includes(path, value, pluck, **options),
        paths, values, st.none() | paths, options,
    ),
    st.builds(lambda path, options: absent(path, **options), paths, options),
    st.builds(starts_with, paths, texts | st.binary(max_size=5)),
    st.builds(
        lambda make, path, text, ignore_case: make(path, text, ignore_case=ignore_case),
        st.sampled_from([contains, starts_with, ends_with]), paths, texts, st.booleans(),
    ),
    st.builds(contains, paths, st.binary(max_size=5)),
    st.builds(lambda text, case: anywhere(text, ignore_case=case), texts.filter(bool), st.booleans()),
    st.builds(like, paths, st.sampled_from(["a%", r"_\%", ""])),
    st.builds(fits, paths, texts),
    st.builds(lambda path, given: isin(path, [*given, *range(FEW)]), paths, st.lists(values, min_size=1, max_size=3)),
    st.builds(lambda path, case: matches(path, r"^a|\d'\"", ignore_case=case), paths, st.booleans()),
    st.builds(
        lambda make, value, index: make(value, index),
        st.sampled_from([gt, gte, lt, lte]),
        numbers,
        st.sampled_from(["timestamp", "sequence", ("timestamp",)]) | paths,
    ),
    st.builds(between, st.sampled_from(["timestamp", "sequence", ("timestamp",)]) | paths, numbers, numbers),
    st.builds(seqs, positions),
    st.builds(offsets, positions),
    st.just(everything()),
)  # fmt: skip
operations = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda args: and_(*args)),
        st.lists(inner, min_size=1, max_size=3).map(lambda args: or_(*args)),
        inner.map(not_),
    ),
    max_leaves=8,
)
