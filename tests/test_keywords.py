"""The keyword arguments of `relwalk.train`: shown, described, checked, and refused in our words."""

from __future__ import annotations

import inspect
import pydoc

import pytest

import relwalk
from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.graph.graph import Graph
from relwalk.keywords import option_keywords, training_keywords
from relwalk.models import MODELS, OPTIONS, model_options
from relwalk.training.common import CommonSettings
from relwalk.training.likelihood import LikelihoodSettings
from relwalk.training.negative_sampling import MarginSettings
from relwalk.training.schedule import Plateau


def test_the_signature_has_every_setting_with_its_type_and_default() -> None:
    shown = inspect.signature(relwalk.train).parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in shown.values())
    for settings in (CommonSettings, MarginSettings, LikelihoodSettings, Plateau):
        for name, field in settings.model_fields.items():
            if name != "name":
                assert (shown[name].annotation, shown[name].default) == (field.annotation, field.default)
    assert (shown["objective"].default, shown["schedule"].default) == ("likelihood", "constant")
    for kind in MODELS.values():
        for name, option in model_options(kind).items():
            assert (shown[name].annotation, shown[name].default) == (option.annotation, option.default)
    assert {"graph", "recipe", "model", "dim", "out", "progress"} <= set(shown)


def test_help_says_what_every_setting_means() -> None:
    text = pydoc.render_doc(relwalk.train, renderer=pydoc.plaintext)
    assert "optimizer: Literal['sgd', 'adagrad', 'rowwise-adagrad', 'adam'] = 'adagrad'" in text
    for name in (*training_keywords(), *option_keywords()):
        assert any(line.split()[:1] == [name] and len(line.split()) > 2 for line in text.splitlines()), name
    assert set(OPTIONS) == set(option_keywords())
    assert not set(training_keywords()) & set(option_keywords())


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ({"epoch": 3}, UnknownChoice, "unknown setting of a training 'epoch'. Did you mean 'epochs'?"),
        ({"optimizer": "adagard"}, UnknownChoice, "unknown optimizer 'adagard'. Did you mean 'adagrad'?"),
        ({"objective": "margn"}, UnknownChoice, "Did you mean 'margin'?"),
        ({"orthogonality": "sof"}, UnknownChoice, "unknown orthogonality 'sof'. Did you mean 'soft'?"),
        ({"model": "transe", "lambda1": 1}, RelWalkError, "lambda1 means nothing to the model TransE"),
        ({"lamda1": 1}, UnknownChoice, "Did you mean 'lambda1'?"),
        ({"lr": -1}, RelWalkError, "lr (--lr) is -1; it should be greater than 0."),
        ({"epochs": "many"}, RelWalkError, "epochs (--epochs) is 'many'; it should be a valid integer"),
        ({"lr": None}, RelWalkError, "lr (--lr) is None; it should be a valid number"),
        ({"dim": 0}, RelWalkError, "dim is 0; expected a whole number from 1 to 65,536"),
        ({"dim": "wide"}, RelWalkError, "dim is 'wide'; expected a whole number"),
        ({"orthogonality": "soft", "lambda1": "strong"}, RelWalkError, "lambda1 (--lambda1) is 'strong'"),
        ({"lambda1": [1]}, RelWalkError, "lambda1 (--lambda1) is [1]"),
        ({"batches": 3, "batch_size": 3}, RelWalkError, "give either batch_size or batches"),
        ({"lr": 0, "epochs": 0}, RelWalkError, "lr (--lr) is 0; it should be greater than 0; epochs (--epochs) is 0"),
    ],
)
def test_a_wrong_keyword_is_an_error_of_ours(world: Graph, wrong: dict, kind: type[RelWalkError], words: str) -> None:
    with pytest.raises(RelWalkError) as error:
        relwalk.train(world, **wrong)
    assert type(error.value) is kind
    assert words in str(error.value)


def test_options_of_the_model_are_keywords_too(five: Graph) -> None:
    run = relwalk.train(five, orthogonality="soft", lambda1=3, dim=4, epochs=1)
    assert run.record.model.options == {"orthogonality": "soft", "lambda1": 3}
