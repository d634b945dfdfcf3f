"""Expectations of every table."""

from health_assets.quality.expectations import Check, between

OF_EVERY_TABLE = (
    Check(name="columns_have_declared_types", expectations=between(0, 0, "columns_of_other_type"), batch="hours"),
    Check(name="required_values_are_present", expectations=between(0, 0, "missing_values")),
)
