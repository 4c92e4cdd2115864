"""A plug-in that does not load."""

import no_such_module_anywhere  # noqa: F401
