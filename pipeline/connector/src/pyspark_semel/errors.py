"""What the connector itself refuses; errors of the cluster come as aiosemel raises them."""


class SemelSparkError(Exception):
    """What is wrong, with its name, and what to do."""


class OptionError(SemelSparkError):
    """An option is missing, misspelt, without meaning, or in conflict with another."""


class DataLossError(SemelSparkError):
    """Records that a query was to read are gone."""


class SchemaError(SemelSparkError):
    """A frame has not the columns that the sink needs, or columns of other types."""
