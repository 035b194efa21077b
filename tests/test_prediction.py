from __future__ import annotations

import pytest
import torch

from relwalk.errors import RelWalkError, UnknownName
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.prediction import predict
from relwalk.run import Run
from tests.conftest import TEST, TRAIN, VALID, make_graph


@pytest.fixture(scope="module")
def run() -> Run:
    return train(make_graph(TRAIN, VALID, TEST), dim=6, epochs=3)


def test_tails_come_best_first_with_their_probabilities(run: Run) -> None:
    found = predict(run, head="a", relation="likes", k=10)
    h, r = torch.tensor([0]), torch.tensor([0])
    with torch.no_grad():
        scores = run.model.score_tails(h, r)[0]
    scores[0] = -torch.inf  # a does not like itself: no entity does
    expected = torch.softmax(run.model.scale * scores, 0)
    assert [answer.name for answer in found] == ["abcde"[i] for i in scores.argsort(descending=True).tolist() if i != 0]
    for answer in found:
        assert answer.probability == pytest.approx(float(expected["abcde".index(answer.name)]), rel=1e-4)
        assert answer.known == (answer.name in "bcd")
    assert sum(answer.probability for answer in found) == pytest.approx(1)


def test_heads_and_relations_too(run: Run) -> None:
    heads = predict(run, relation="knows", tail="d")
    assert {answer.name for answer in heads if answer.known} == {"c"}
    relations = predict(run, head="c", tail="d")
    assert {answer.name: answer.known for answer in relations} == {"likes": False, "knows": True}
    assert sum(answer.probability for answer in relations) == pytest.approx(1)


def test_only_new_leaves_out_what_is_known(run: Run) -> None:
    found = predict(run, head="a", relation="likes", only_new=True)
    assert [answer.name for answer in found] == ["e"]


def test_a_relation_with_loops_may_answer_with_the_same_entity() -> None:
    looped = train(make_graph([(0, 0, 0), (1, 0, 2)], entities=3, relations=1), dim=4, epochs=1)
    assert {answer.name for answer in predict(looped, head="b", relation="likes")} == {"a", "b", "c"}


def test_wrong_questions_are_answered_kindly(run: Run, world: Graph) -> None:
    with pytest.raises(RelWalkError, match="give two"):
        predict(run, head="a")
    with pytest.raises(RelWalkError, match="give two"):
        predict(run, head="a", relation="likes", tail="b")
    with pytest.raises(RelWalkError, match="k is 0"):
        predict(run, head="a", relation="likes", k=0)
    with pytest.raises(UnknownName, match="Did you mean 'France'"):
        world.entities.id("Frnace")
    with pytest.raises(UnknownName, match="Did you mean 'France'"):
        world.entities.id("france")
    with pytest.raises(UnknownName, match="'likes'"):
        predict(run, head="a", relation="like")


def test_labels_answer_where_names_do_not() -> None:
    graph = make_graph(TRAIN)
    from relwalk.graph.vocabulary import Vocabulary

    labelled = Vocabulary("entity", graph.entities.names, ("Anna", "Berta", "Berta", None, "Emil"))
    assert labelled.id("Anna") == 0
    assert labelled.id("d") == 3
    assert (labelled.label(0), labelled.label(3)) == ("Anna", "d")
    with pytest.raises(UnknownName, match="'b', 'c'"):
        labelled.id("Berta")


def test_answers_print_themselves(run: Run) -> None:
    text = str(predict(run, head="a", relation="likes", k=2))
    assert text.splitlines()[0] == "a likes ?"
    assert len(text.splitlines()) == 4
    assert "%" in text
