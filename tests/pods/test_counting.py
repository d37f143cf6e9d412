"""Selectors get counters: who takes them, whom they bind, and when a number may mean something else."""

from __future__ import annotations

from msgspec import structs

from optimus.drivers.kube.counting import Counting, Social, Spreading, Term
from optimus.drivers.kube.selectors import Requirement, Selector, Whom
from optimus.model.rules import EVERYWHERE, Bond, NeighbourRule


def app(*names: str, namespaces: tuple[str, ...] = ("team",), **more: object) -> Whom:
    return Whom(Selector((Requirement("app", "In", names),)), namespaces, **more)  # type: ignore[arg-type]


def social(name: str = "", *, namespace: str = "team", **more: object) -> Social:
    labels = (("app", name),) if name else ()
    return Social(namespace=namespace, labels=labels, **more)  # type: ignore[arg-type]


APART = (Term(app("web"), "host"),)


def bonds(rules: tuple[NeighbourRule, ...]) -> list[tuple[Bond, str, str]]:
    return [(rule.bond, rule.counter, rule.level) for rule in rules]


def test_who_matches_takes_one_and_who_keeps_apart_warns_those_who_match() -> None:
    counting = Counting()
    counting.see("web", social("web"), to_place=False)
    counting.see("db", social("db"))
    assert counting.takes("web") == () and counting.rules("db") == ()
    counting.see("loner", social("db", apart=APART))
    matching, having = "~near/0", "~near/1"
    assert counting.takes("web") == (matching,)
    assert counting.takes("loner") == (having,)
    assert bonds(counting.rules("loner")) == [(Bond.APART, matching, "host")]
    counting.see("web2", social("web"))
    assert bonds(counting.rules("web2")) == [(Bond.APART, having, "host")]
    assert counting.takes("db") == () and counting.rules("db") == ()


def test_those_who_are_only_there_impose_what_they_keep_apart_from() -> None:
    counting = Counting()
    counting.see("foreign", social("db", apart=APART), to_place=False)
    counting.see("web", social("web"))
    assert counting.takes("foreign") == ("~near/0",)
    assert bonds(counting.rules("web")) == [(Bond.APART, "~near/0", "host")]
    counting.forget("foreign")
    assert counting.rules("web") == ()


def test_near_counts_those_who_match_all_terms() -> None:
    counting = Counting()
    front = Whom(Selector((Requirement("tier", "Exists"),)), ("team",))
    counting.see("asker", social("web", near=(Term(app("web"), "host"), Term(front, "zone"))))
    counting.see("web", social("web"))
    both = Social(namespace="team", labels=(("app", "web"), ("tier", "x")))
    counting.see("both", both)
    assert counting.takes("web") == () and counting.takes("both") == ("~near/0",)
    rules = counting.rules("asker")
    assert bonds(rules) == [(Bond.NEAR, "~near/0", "host"), (Bond.NEAR, "~near/0", "zone")]
    assert not any(rule.alone_is_fine for rule in rules)
    counting.see("series", structs.replace(both, near=(Term(app("web"), "host"),)))
    assert counting.rules("series")[0].alone_is_fine


def test_those_who_leave_do_not_count_for_spreading_but_for_nearness() -> None:
    counting = Counting()
    counting.see("spread", social("web", spread=(Spreading(app("web", staying=True), "zone"),)))
    counting.see("near", social("db", near=(Term(app("web"), "zone"),)))
    counting.see("leaving", social("web", leaving=True), to_place=False)
    assert counting.takes("spread") == ("~near/0", "~near/1")
    assert counting.takes("leaving") == ("~near/1",)


def test_namespaces_are_reached_by_name_or_by_their_labels() -> None:
    counting = Counting()
    counting.see_namespace("other", {"team": "y"})
    among = Selector((Requirement("team", "In", ("y",)),))
    counting.see("asker", social("a", apart=(Term(app("web", namespaces=(), among=among), "host"),)))
    counting.see("here", social("web"))
    counting.see("there", social("web", namespace="other"))
    assert counting.takes("here") == () and counting.takes("there") == ("~near/0",)
    before = counting.version
    counting.see_namespace("other", {"team": "z"})
    assert counting.version > before
    assert counting.takes("there") == ()


def test_a_volume_for_one_pod_keeps_all_its_users_apart_everywhere() -> None:
    counting = Counting()
    counting.see("one", social(sole_claims=("disk",)))
    counting.see("two", social(sole_claims=("disk",)), to_place=False)
    counting.see("far", social(namespace="other", sole_claims=("disk",)), to_place=False)
    assert counting.takes("two") == ("~near/0",) and counting.takes("far") == ()
    assert bonds(counting.rules("one")) == [(Bond.APART, "~near/0", EVERYWHERE)]


def test_equal_selectors_share_a_counter_and_the_version_tells_when_others_must_look_again() -> None:
    counting = Counting()
    counting.see("a", social("x", apart=APART))
    version = counting.version
    counting.see("b", social("y", apart=APART))
    counting.see("b", social("y", apart=APART))
    assert counting.version == version
    counting.forget("a")
    assert counting.version == version, "b still needs it"
    counting.forget("b")
    assert counting.version > version


def test_a_number_is_used_again_only_when_nobody_has_it_in_his_books() -> None:
    counting = Counting()
    counting.see("web", social("web"), to_place=False)
    counting.see("loner", social("db", apart=APART))
    assert counting.takes("web") == ("~near/0",)
    counting.forget("loner")
    counting.see("other", social("db", near=(Term(app("cache"), "host"),)))
    assert counting.rules("other")[0].counter == "~near/1", "web was told to take 0"
    counting.forget("web")
    counting.see("third", social("db", near=(Term(app("queue"), "host"),)))
    assert counting.rules("third")[0].counter == "~near/0"


def test_forgetting_a_pod_that_was_never_seen_is_fine() -> None:
    Counting().forget("nobody")
