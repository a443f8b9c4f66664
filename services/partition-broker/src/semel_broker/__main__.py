"""The partition broker as a process."""

from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_runtime.process.main import main

if __name__ == "__main__":
    main("semel-broker", BrokerSettings, BrokerApp)
