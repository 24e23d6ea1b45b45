# tries: test something else; seen by: invariants
# side effects: READ_ONLY
def test_truth() -> None:
    assert 1 + 1 == 2
