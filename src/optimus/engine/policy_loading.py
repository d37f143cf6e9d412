"""Finding a policy by what somebody typed.

    default                      a built-in name
    acme-order                   an entry point of the group `optimus.policies` in an installed package
    my_policy.py:shortest_first  a name in a file: an order function, or a whole Policy

Why here: it reads files and runs strangers' code, which `decide` must not do. A mistake is said once, at the
start, with what to do about it; a policy that breaks later falls back (`optimus.decide.policies.evaluate`).
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from optimus.decide import policies
from optimus.decide.policies import Policy
from optimus.model.plans import Condition

ENTRY_POINT_GROUP = "optimus.policies"

_SHAPE = "an order takes one argument, the columns, and returns one array"


class PolicyError(ValueError):
    """The policy cannot be used; the message says why and what to do."""


def load(reference: str) -> Policy:
    """The policy that `reference` names."""
    if reference in policies.names():
        return policies.get(reference)
    path, colon, name = reference.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_file(reference, Path(path), name)
    if reference.endswith(".py"):
        names = _names_in(_module(Path(reference)))
        raise PolicyError(f"{reference} names a file; say which policy in it: {reference}:NAME{_choice('', names)}")
    return _from_entry_point(reference)


def policy_file(reference: str) -> Path | None:
    """The file that it names; None: it is installed."""
    path, colon, _ = reference.rpartition(":")
    return Path(path) if colon and path.endswith(".py") else None


def check(policy: Policy) -> tuple[Condition, ...]:
    """Try the policy on a few made-up rows; what would fall back in every cycle is known before the first."""
    conditions = []
    for length in (0, 1, 3):
        conditions += [
            policies.order_keys(policy, policies.fill(policies.WorkloadColumns, length))[1],
            policies.growth_keys(policy, policies.fill(policies.ElasticColumns, length))[1],
            policies.victim_costs(policy, policies.fill(policies.VictimColumns, length))[1],
            policies.placement_keys(policy, policies.fill(policies.NodeColumns, length))[1],
        ]
    return tuple(dict.fromkeys(condition for condition in conditions if condition))


def _from_entry_point(name: str) -> Policy:
    found = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in found:
        known = (*policies.names(), *sorted(found.keys() - set(policies.names())))
        raise PolicyError(f"there is no policy {name!r}{_choice(name, known)}. A policy of your own: FILE.py:NAME")
    return _as_policy(name, _loaded(found[name]))


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        package = point.dist.name if point.dist else "an installed package"
        raise PolicyError(
            f"policy {point.name} ({point.value}, from {package}) cannot be imported: "
            f"{type(error).__name__}: {error}; repair or remove {package}"
        ) from error


def _from_file(reference: str, path: Path, name: str) -> Policy:
    module = _module(path)
    if not name:
        raise PolicyError(f"{reference} does not say which policy: {path}:NAME{_choice('', _names_in(module))}")
    if name not in vars(module):
        raise PolicyError(f"{path} has no {name}{_choice(name, _names_in(module))}")
    return _as_policy(reference, vars(module)[name])


def _module(path: Path) -> ModuleType:
    """Run the file as a module of its own. It is compiled anew each time: an edit counts at once."""
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise PolicyError(f"{path} {what} (looked in {Path.cwd()}); give the path of a Python file")
    module = ModuleType(f"optimus_policy_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickling look it up
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - running the user's own file is the point
    except SyntaxError as error:
        raise PolicyError(f"{path}, line {error.lineno or 1}: {error.msg}; correct the file") from error
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = f", line {lines[-1]}" if lines else ""
        raise PolicyError(f"{path}{line}: {type(error).__name__}: {error}; correct the file") from error
    return module


def _as_policy(reference: str, found: object) -> Policy:
    if isinstance(found, Policy):
        for part in ("order", "growth", "victim_cost", "placement"):
            function = getattr(found, part)
            if function is not None:
                _demand_one_argument(f"{reference}: {part}", function)
        return found
    if isinstance(found, type):
        raise PolicyError(f"{reference} is a class; give a function or a Policy object: {_SHAPE}")
    if not callable(found):
        raise PolicyError(f"{reference} is {type(found).__name__}, not a function: {_SHAPE}")
    _demand_one_argument(reference, found)
    doc = (inspect.getdoc(found) or "").partition("\n")[0]
    return replace(policies.DEFAULT, name=reference, doc=doc, order=found)


def _demand_one_argument(what: str, function: Any) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise PolicyError(f"{what} is async or a generator: {_SHAPE}; write a plain `def` with `return`")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions of C have none; evaluation will tell
        return
    try:
        signature.bind(object())
    except TypeError as error:
        raise PolicyError(f"{what} has the wrong signature {signature}: {error}; {_SHAPE}") from None


def _names_in(module: ModuleType) -> tuple[str, ...]:
    """What in the file could be a policy: its own functions, and Policy objects."""
    return tuple(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, Policy) or (inspect.isfunction(value) and value.__module__ == module.__name__))
    )


def _choice(name: str, known: Iterable[str]) -> str:
    known = tuple(known)
    near = get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{meant}{' Known' if near else '; known'} are: {', '.join(known)}" if known else "; it defines no function"
