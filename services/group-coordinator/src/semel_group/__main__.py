"""The group coordinator as a process."""

from semel_group.app import GroupApp
from semel_group.config import GroupSettings
from semel_runtime.process.main import main

if __name__ == "__main__":
    main("semel-group", GroupSettings, GroupApp)
