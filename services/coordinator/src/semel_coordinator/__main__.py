"""The coordinator as a process."""

from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_runtime.process.main import main

if __name__ == "__main__":
    main("semel-coordinator", CoordinatorSettings, CoordinatorApp)
