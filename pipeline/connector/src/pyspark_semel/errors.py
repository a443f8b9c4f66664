"""What the connector itself refuses; errors of the cluster come as aiosemel raises them."""


class SemelSparkError(Exception):
    """What is wrong, with its name, and what to do."""


class OptionError(SemelSparkError):
    """An option is missing, misspelt, without meaning, or in conflict with another."""


class UnreachableError(SemelSparkError):
    """No cluster answers at the addresses of ``bootstrap.servers``."""


class UnknownTopicError(SemelSparkError):
    """A topic or a partition that a query names is not there."""


class DataLossError(SemelSparkError):
    """Records that a query was to read are gone."""


class CheckpointError(SemelSparkError):
    """A checkpoint holds offsets that are not of this source, or not of this cluster."""


class RecordError(SemelSparkError):
    """A row cannot become a record."""


class TransactionError(SemelSparkError):
    """A write cannot be the transaction that it is meant to be."""


class SchemaError(SemelSparkError):
    """A frame has not the columns that are needed, or columns of other types."""
