"""What is known of the UCI regression sets: shapes, names, protocol, checksums."""

from dataclasses import dataclass

_CC_BY = "CC BY 4.0 (UCI); this edition's repository CC BY-NC 4.0"


@dataclass(frozen=True)
class UCISet:
    """The facts about one set.

    Attributes
    ----------
    name, folder : str
        The short name, and that of its folder and of the published tables.
    n_rows, n_columns : int
        The shape of the table.
    feature_names : tuple of str
    target_name, target_units : str
    sha256 : str
        Of the uncompressed ``data.txt``; empty if it is not known.
    licence : str
    n_splits, n_hidden, n_epochs : int
        The protocol.
    n_test : int
        The last rows of the table, if they are the test set; else 0.
    first_feature, target_column : int
        Columns of the table.
    """

    name: str
    folder: str
    n_rows: int
    n_columns: int
    feature_names: tuple[str, ...]
    target_name: str
    target_units: str
    sha256: str
    licence: str = _CC_BY
    n_splits: int = 20
    n_hidden: int = 50
    n_epochs: int = 40
    n_test: int = 0
    first_feature: int = 0
    target_column: int = -1

    @property
    def feature_columns(self) -> range:
        """The columns of the inputs."""
        return range(self.first_feature, self.first_feature + len(self.feature_names))

    @property
    def is_archive(self) -> bool:
        """Whether the table comes as a zip with commas between the numbers."""
        return not self.sha256


_BOSTON = UCISet(
    "boston", "bostonHousing", 506, 14,
    ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX",
     "PTRATIO", "B", "LSTAT"),
    "MEDV", "1000 US dollars",
    "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a",
    licence="StatLib; this edition's repository CC BY-NC 4.0",
)  # fmt: skip

_CONCRETE = UCISet(
    "concrete", "concrete", 1030, 9,
    ("cement", "slag", "fly ash", "water", "superplasticizer", "coarse aggregate",
     "fine aggregate", "age"),
    "compressive strength", "MPa",
    "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de",
)  # fmt: skip

_ENERGY = UCISet(
    "energy", "energy", 768, 9,
    ("relative compactness", "surface area", "wall area", "roof area",
     "overall height", "orientation", "glazing area", "glazing area distribution"),
    "heating load", "kWh/m²",
    "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950",
)  # fmt: skip

_KIN8NM = UCISet(
    "kin8nm", "kin8nm", 8192, 9, tuple(f"theta{i}" for i in range(1, 9)),
    "distance of the end effector from the target", "",
    "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810",
    licence="DELVE; this edition's repository CC BY-NC 4.0",
)  # fmt: skip

_NAVAL = UCISet(
    "naval", "naval-propulsion-plant", 11934, 18,
    ("lever position", "ship speed", "gas turbine shaft torque",
     "gas turbine rate of revolutions", "gas generator rate of revolutions",
     "starboard propeller torque", "port propeller torque",
     "turbine exit temperature", "compressor inlet temperature",
     "compressor outlet temperature", "turbine exit pressure",
     "compressor inlet pressure", "compressor outlet pressure",
     "exhaust gas pressure", "turbine injection control", "fuel flow"),
    "compressor decay", "",
    "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
    target_column=16,
)  # fmt: skip

_POWER = UCISet(
    "power", "power-plant", 9568, 5, ("AT", "V", "AP", "RH"), "PE", "MW",
    "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
)  # fmt: skip

_PROTEIN = UCISet(
    "protein", "protein-tertiary-structure", 45730, 10,
    tuple(f"F{i}" for i in range(1, 10)), "RMSD", "Å",
    "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
    n_splits=5, n_hidden=100, n_epochs=20,
)  # fmt: skip

_WINE = UCISet(
    "wine", "wine-quality-red", 1599, 12,
    ("fixed acidity", "volatile acidity", "citric acid", "residual sugar",
     "chlorides", "free sulfur dioxide", "total sulfur dioxide", "density", "pH",
     "sulphates", "alcohol"),
    "quality", "points, 0 to 10",
    "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1",
)  # fmt: skip

_YACHT = UCISet(
    "yacht", "yacht", 308, 7,
    ("longitudinal position of the centre of buoyancy", "prismatic coefficient",
     "length-displacement ratio", "beam-draught ratio", "length-beam ratio",
     "Froude number"),
    "residuary resistance per unit weight of displacement", "",
    "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1",
)  # fmt: skip

_YEAR = UCISet(
    "year", "YearPredictionMSD", 515_345, 91,
    (*(f"timbre average {i}" for i in range(1, 13)),
     *(f"timbre covariance {i}" for i in range(1, 79))),
    "year", "years", "",
    licence="CC BY 4.0 (UCI)",
    n_splits=1, n_hidden=100, n_test=51_630, first_feature=1, target_column=0,
)  # fmt: skip

UCI_SETS = (
    _BOSTON, _CONCRETE, _ENERGY, _KIN8NM, _NAVAL, _POWER, _PROTEIN, _WINE, _YACHT,
    _YEAR,
)  # fmt: skip
"""All ten, in the order of the published tables."""
