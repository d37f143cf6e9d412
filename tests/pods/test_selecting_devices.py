"""Expressions that select devices: what they may say, and what an error is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from optimus.drivers.kube.device_objects import Device
from optimus.drivers.kube.selecting import SelectorError, Selectors

DRIVER = "gpu.example.com"
GPU: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "H100"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "driverVersion": {"version": "550.54.15"},
        "rdma.example.com/link": {"string": "a"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "16896"}},
}


def accepts(expression: str, **more: Any) -> bool:
    device = msgspec.convert({**GPU, **more}, type=Device)
    return Selectors().accepts(expression, DRIVER, device)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "H100"',
        'device.attributes["gpu.example.com"].model in ["H100", "H200"]',
        'device.attributes["gpu.example.com"].model.startsWith("H")',
        'device.attributes["gpu.example.com"].model.lowerAscii() == "h100"',
        'device.attributes["gpu.example.com"].model.matches("^H[0-9]+$")',
        'device.attributes["gpu.example.com"].index > 2 && device.attributes["gpu.example.com"].ecc',
        'device.attributes["rdma.example.com"].link == "a"',
        'device.attributes["gpu.example.com"].index != "3"',
        'has(device.attributes["gpu.example.com"].model)',
        '!has(device.attributes["gpu.example.com"].colour)',
        '!has(device.attributes["nobody.example.com"].colour)',
        '"model" in device.attributes["gpu.example.com"]',
        '"gpu.example.com" in device.attributes && !("nobody.example.com" in device.attributes)',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("79Gi"))',
        'device.capacity["gpu.example.com"].memory == quantity("81920Mi")',
        'device.capacity["gpu.example.com"].cores.asInteger() == 16896',
        'device.capacity["gpu.example.com"].memory.sub(quantity("80Gi")).sign() == 0',
        'isQuantity("80Gi") && !isQuantity("eighty")',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("550.0.0"))',
        'device.attributes["gpu.example.com"].driverVersion.compareTo(semver("551.0.0-rc.1")) < 0',
        'semver("1.0.0-rc.2").isLessThan(semver("1.0.0")) && semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10"))',
        'device.attributes["gpu.example.com"].driverVersion.major() == 550',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.model == "H100" && gpu.ecc)',
        'cel.bind(a, device.attributes["gpu.example.com"], cel.bind(m, a.model, m + "(,)" == "H100(,)"))',
        'device.attributes["gpu.example.com"].colour == "red" || device.driver == "gpu.example.com"',
    ],
)
def test_an_expression_says_which_devices_it_means(expression: str) -> None:
    assert accepts(expression)
    assert not accepts(f"!({expression})")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ('device.attributes["gpu.example.com"].colour == "red"', "colour is not there"),
        ('device.attributes["nobody.example.com"].colour == "red"', "colour is not there"),
        ('device.attributes["gpu.example.com"].index > "x"', "overload"),
        ('device.capacity["gpu.example.com"].memory > quantity("1")', "overload"),
        ('device.attributes["gpu.example.com"].model', "neither true nor false"),
        ('quantity("eighty") == quantity("1")', "eighty"),
        ('semver("1.2") == semver("1.2.0")', "1.2"),
    ],
)
def test_what_has_no_answer_is_an_error_and_no_match(expression: str, words: str) -> None:
    with pytest.raises(SelectorError) as error:
        accepts(expression)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("device.driver ==", ""),
        ("sets.contains([1], [1])", "function sets is not known"),
        ('device.driver.format(["x"]) == ""', "function format is not known"),
        ('url(device.driver).getHost() == ""', "is not known"),
        ("cel.bind(a, 1)", "cel.bind takes"),
        ('device.attributes["d"].?x.orValue(1) == 1', ""),
    ],
)
def test_what_cannot_be_evaluated_is_known_before_any_device_is_asked(expression: str, words: str) -> None:
    trouble = Selectors().trouble(expression)
    assert trouble and words in trouble
    assert Selectors().trouble("device.driver == 'x'") == ""


def test_what_an_expression_does_not_name_is_not_asked_for_but_where_it_looks_at_all() -> None:
    names = 'device.attributes["gpu.example.com"].all(name, name != "serial")'
    assert accepts(names)
    assert not accepts(names, attributes={"serial": {"string": "1"}})
    assert accepts('size(device.attributes["gpu.example.com"]) == 4')
    assert accepts('device.attributes["gpu.example.com"]["ser" + "ial"] == "1"', attributes={"serial": {"string": "1"}})
    assert accepts('"rdma.example.com" in device.attributes'), "a domain is there, whatever is in it"
    assert accepts('"gpu.example.com" in device.capacity')


def test_a_value_of_a_kind_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(SelectorError, match="attribute odd"):
        accepts("device.driver != ''", attributes={"odd": {}})
