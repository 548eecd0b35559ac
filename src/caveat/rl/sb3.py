"""Thompson sampling for the DQN of Stable-Baselines3."""

from typing import Any

import torch.nn.functional as F
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from caveat import _validation as check


class DropoutQNetwork(QNetwork):
    """A Q-network whose every pass is that of a network drawn from the posterior.

    Units behind every non-linearity are dropped whatever the mode of the module:
    Stable-Baselines3 turns ordinary dropout off to act and in its target network.

    Parameters
    ----------
    *args, **kwargs
        As for ``QNetwork``.
    drop_rate : float
        Probability that a hidden unit is dropped.
    """

    def __init__(self, *args: Any, drop_rate: float = 0.1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drop_rate = check.drop_rate(drop_rate, where="drop_rate")

    def forward(self, obs: PyTorchObs) -> Tensor:
        """Values of the actions under one sampled network for each row."""
        return self._run(obs, self.drop_rate)

    def _predict(self, observation: PyTorchObs, deterministic: bool = True) -> Tensor:
        rate = 0.0 if deterministic else self.drop_rate
        return self._run(observation, rate).argmax(1)

    def _run(self, obs: PyTorchObs, rate: float) -> Tensor:
        x = self.extract_features(obs, self.features_extractor)
        for layer in self.q_net:
            x = layer(x)
            if not isinstance(layer, nn.Linear):
                x = F.dropout(x, rate, training=True)
        return x

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "drop_rate": self.drop_rate}


class DropoutDQNPolicy(DQNPolicy):
    """A policy for Stable-Baselines3's ``DQN`` that explores by dropout.

    Acting is the best action of one stochastic pass (Thompson sampling, paper 001,
    section 5.4); replay goes through one sampled mask for the prediction and another
    for the target. ``predict(..., deterministic=True)`` is one pass without dropout.
    Masks are drawn from torch's generator, which ``DQN(seed=...)`` seeds.

    Parameters
    ----------
    *args, **kwargs
        As for ``DQNPolicy``.
    drop_rate : float
        Probability that a hidden unit is dropped; given to ``DQN`` as
        ``policy_kwargs={"drop_rate": 0.2}``.

    Examples
    --------
    Set both rates of epsilon-greedy exploration to 0, as dropout explores.

    >>> from stable_baselines3 import DQN
    >>> from caveat.rl import DropoutDQNPolicy
    >>> model = DQN(
    ...     DropoutDQNPolicy,
    ...     "CartPole-v1",
    ...     exploration_initial_eps=0.0,
    ...     exploration_final_eps=0.0,
    ... )
    >>> model = model.learn(200)
    """

    def __init__(self, *args: Any, drop_rate: float = 0.1, **kwargs: Any) -> None:
        self._drop_rate = drop_rate
        super().__init__(*args, **kwargs)

    def make_q_net(self) -> QNetwork:
        """A network with dropout that is always on."""
        arguments = self._update_features_extractor(
            self.net_args, features_extractor=None
        )
        network = DropoutQNetwork(**arguments, drop_rate=self._drop_rate)
        return network.to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "drop_rate": self._drop_rate}
