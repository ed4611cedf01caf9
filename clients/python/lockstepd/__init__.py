"""A client for lockstepd that needs nothing but Python's standard library. See README.md beside this package."""

from .client import Client, Closed, Rejected
from .observer import Observer
from .wire import WireError

__all__ = ["Client", "Closed", "Observer", "Rejected", "WireError"]
