"""Trained networks on disk, so that no reproduction trains what another one has."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from caveat.papers.lenet.images import Images, load_images


class Trainable(Protocol):
    """A network to be trained; untrained or trained, it is in evaluation mode."""

    @property
    def name(self) -> str: ...  # for the file of the network

    @property
    def settings(self) -> dict[str, Any]: ...  # all it depends on, beside the images

    def build(self) -> nn.Sequential: ...

    def train(self, images: Images) -> nn.Sequential: ...


@dataclass(frozen=True)
class NetStore:
    """A folder of networks trained on one data set."""

    folder: Path  # made when the first network is written
    data: str  # the name of the images

    def path(self, job: Trainable) -> Path:
        """The file of a network."""
        return self.folder / f"{self.data.lower()}_{job.name}.safetensors"

    def get(self, job: Trainable) -> nn.Sequential:
        """The network, in evaluation mode; it is trained if it is not here yet."""
        if not self.has(job):
            self.save(job, job.train(load_images()))
        return self.load(job)

    def has(self, job: Trainable) -> bool:
        """Whether the network is here, whole and with these settings."""
        try:
            with safe_open(self.path(job), framework="pt") as file:
                return bool(file.metadata() == self._metadata(job))
        except (FileNotFoundError, SafetensorError):
            return False

    def load(self, job: Trainable) -> nn.Sequential:
        """A network that is here, in evaluation mode."""
        net = job.build()
        with safe_open(self.path(job), framework="pt") as file:
            net.load_state_dict({name: file.get_tensor(name) for name in file.keys()})
        return net

    def save(self, job: Trainable, net: nn.Sequential) -> None:
        """Write a network; its file is whole at any time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        state = {name: value.contiguous() for name, value in net.state_dict().items()}
        draft = self.path(job).with_suffix(".part")
        save_file(state, draft, metadata=self._metadata(job))
        draft.replace(self.path(job))

    def _metadata(self, job: Trainable) -> dict[str, str]:
        settings = {**job.settings, "data": self.data}
        return {"settings": json.dumps(settings, sort_keys=True)}
