"""The zoo: every model that the sampler must get right, or refuse."""

from tests.zoo import (
    attention,
    control,
    distributions,
    feedforward,
    generators,
    graphs,
    handmade,
    libraries,
    mixing,
    operations,
    recurrent,
    structure,
    writes,
)
from tests.zoo.specimen import Specimen

ZOO: list[Specimen] = [
    *feedforward.SPECIMENS,
    *recurrent.SPECIMENS,
    *attention.SPECIMENS,
    *handmade.SPECIMENS,
    *writes.SPECIMENS,
    *control.SPECIMENS,
    *structure.SPECIMENS,
    *mixing.SPECIMENS,
    *generators.SPECIMENS,
    *graphs.SPECIMENS,
    *operations.SPECIMENS,
    *distributions.SPECIMENS,
    *libraries.SPECIMENS,
]

BY_NAME: dict[str, Specimen] = {specimen.name: specimen for specimen in ZOO}
