"""Data to try things on, and the data of the papers.

Sets of the papers are read from the folder named by the environment variable
``CAVEAT_DATA``, from the cache, or from the net; see `caveat.data.storage`.
"""

from caveat.data.catalogue import DatasetInfo, fetch, list_datasets
from caveat.data.embedded import (
    DigitImages,
    MonthlySeries,
    load_co2_monthly,
    load_digits_images,
)
from caveat.data.images import (
    MNIST,
    LabelledImages,
    load_fashion_sample,
    load_mnist,
    load_notmnist,
)
from caveat.data.qspr import QSPRData, load_qspr
from caveat.data.reviews import ReviewData, Reviews, load_reviews
from caveat.data.series import (
    CO2Data,
    CO2Months,
    CO2Transform,
    SolarData,
    SolarGap,
    SolarPoints,
    load_co2,
    load_solar,
)
from caveat.data.text import (
    SST2,
    MovieRatings,
    Sentences,
    load_movie_ratings,
    load_sst2,
)
from caveat.data.uci import RegressionData, Split, load_uci
from caveat.data.uci_results import (
    GridSettings,
    OriginalSettings,
    PublishedResult,
    SplitResult,
    load_uci_grid_settings,
    load_uci_per_split,
    load_uci_published,
    load_uci_settings,
)

__all__ = [
    "CO2Data",
    "CO2Months",
    "CO2Transform",
    "DatasetInfo",
    "DigitImages",
    "SolarGap",
    "GridSettings",
    "LabelledImages",
    "MNIST",
    "MonthlySeries",
    "MovieRatings",
    "OriginalSettings",
    "PublishedResult",
    "QSPRData",
    "RegressionData",
    "ReviewData",
    "Reviews",
    "SST2",
    "Sentences",
    "SolarData",
    "SolarPoints",
    "Split",
    "SplitResult",
    "fetch",
    "list_datasets",
    "load_co2",
    "load_co2_monthly",
    "load_digits_images",
    "load_fashion_sample",
    "load_mnist",
    "load_movie_ratings",
    "load_notmnist",
    "load_qspr",
    "load_reviews",
    "load_solar",
    "load_sst2",
    "load_uci",
    "load_uci_grid_settings",
    "load_uci_per_split",
    "load_uci_published",
    "load_uci_settings",
]
