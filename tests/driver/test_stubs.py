import contextlib
import functools
import inspect

import pytest

from conformkit.conformance.driver.worker.stubs import stubs


def plain(x):
    raise NotImplementedError


def told(x):
    """Say what to do."""
    raise NotImplementedError("divide by the root of the width")


def begun(x):
    y = [x, x]
    y.append(1)
    raise NotImplementedError


@contextlib.contextmanager
def context():
    yield


in_context = context()(plain)


@functools.singledispatch
def dispatched(x):
    raise NotImplementedError


@dispatched.register
def _(x: int):
    return x


@functools.wraps(plain)
def replaced(x):
    return x


def for_some(x):
    if x > 3:
        raise NotImplementedError
    return x


def for_others(x):
    for y in range(x):
        if y == 3:
            return y
    raise NotImplementedError


def caught(x):
    with contextlib.suppress(NotImplementedError):
        raise NotImplementedError
    raise ValueError(x)


def handled(x):
    try:
        plain(x)
        raise NotImplementedError  # noqa: TRY301 - what is caught here
    except NotImplementedError:
        return x


def another(x):
    raise ValueError(x)


def yielding(x):
    yield x
    raise NotImplementedError


def place(file):
    return "mine.py" if file == __file__ else None


@pytest.mark.parametrize("function", [plain, told, begun, in_context, staticmethod(told)])
def test_what_always_raises_not_implemented_error_is_a_stub(function):
    where = stubs({"f": function}, place)["f"]  # in_context has the code of plain
    code = inspect.unwrap(getattr(function, "__func__", function)).__code__
    body = inspect.getsource(code).splitlines()
    line = code.co_firstlineno + next(n for n, text in enumerate(body) if "raise" in text)
    assert where == f"mine.py:{line} in {code.co_name}"


@pytest.mark.parametrize(
    "function", [dispatched, replaced, for_some, for_others, caught, handled, another, yielding, len, None, 3]
)
def test_what_may_end_otherwise_is_none(function):
    assert stubs({"f": function}, place) == {}
