"""Data to try things on."""

from caveat.data.embedded import (
    DigitImages,
    MonthlySeries,
    load_co2_monthly,
    load_digits_images,
)

__all__ = ["DigitImages", "MonthlySeries", "load_co2_monthly", "load_digits_images"]
