"""``python -m pure_modules``: the files of the import contract `pure`, as coverage wants them."""

import sys

from source_tree import pure_modules

if __name__ == "__main__":
    sys.stdout.write(",".join(module.path for module in pure_modules()))
