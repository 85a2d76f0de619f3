# SPDX-License-Identifier: Apache-2.0
"""A key-value store that follows a person across their devices, with a server of their own."""

from .engine import UbiquityError
from .link import VERSION as __version__
from .plist import ExactDate, Value
from .shell import Change
from .store import Status, Store

__all__ = ["Change", "ExactDate", "Status", "Store", "UbiquityError", "Value", "__version__"]
