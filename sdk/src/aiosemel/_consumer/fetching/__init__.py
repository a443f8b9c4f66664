"""The supply of a consumer: positions that are found, and records that are fetched ahead."""
