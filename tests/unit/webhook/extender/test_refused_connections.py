"""Who was turned away lately."""

from fairlead.webhook.extender.callers import LATELY_NS, RefusedConnections


def test_of_each_address_the_last_reason_is_known_for_a_while() -> None:
    turned = RefusedConnections()
    turned.add("10.0.0.1", "no certificate", 0)
    turned.add("10.0.0.2", "expired", LATELY_NS)
    turned.add("10.0.0.1", "identity", 1)
    assert turned.recent(LATELY_NS) == {"10.0.0.1": "identity", "10.0.0.2": "expired"}
    assert turned.recent(LATELY_NS + 2) == {"10.0.0.2": "expired"}
    assert turned.recent(2 * LATELY_NS + 1) == {}


def test_those_who_come_from_everywhere_take_no_room() -> None:
    turned = RefusedConnections(limit=2)
    for number in range(5):
        turned.add(str(number), "identity", number)
    turned.add("3", "expired", 5)
    turned.add("5", "identity", 6)
    assert turned.recent(6) == {"3": "expired", "5": "identity"}
