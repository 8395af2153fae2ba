"""The functions of pointwise's own ops. Importing this module registers them with torch."""

from . import _library, _native, _spec

FUNCTIONS, CALLS = _library.build("pointwise", _spec.parse(_native.describe()), _native.implement, family=True)
