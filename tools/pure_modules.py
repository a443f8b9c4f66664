"""Writes the files of the modules that the import contract `pure` is about, as coverage wants them.

With `tests` on the path, whose module `source_tree` reads that contract.
"""

import sys

from source_tree import pure_modules

sys.stdout.write(",".join(module.path for module in pure_modules()))
