"""Claims of the papers that no page is about: theory, shown by tests, and the rest."""

from dataclasses import dataclass

from caveat.papers.claims import FAILS, HOLDS, OPEN, PARTLY


@dataclass(frozen=True)
class Stated:
    """A claim, and what shows whether it holds.

    Attributes
    ----------
    paper : str
        Its number, and where in it.
    words : str
        Those of the paper, or a few for a formula.
    verdict : str
        As on the pages.
    test : str
        What shows it, as pytest names it; empty if it was not judged.
    reason : str
        Why it holds only in part or not at all, or why it was not judged.
    """

    paper: str
    words: str
    verdict: str
    test: str = ""
    reason: str = ""


_T = "tests/theory/"
_M = "tests/maxent/"

STATED = (
    Stated(
        "000, section 3.1",
        "σ with weights w ~ p(w) and b ~ p(b) defines a valid covariance function, "
        "which K random units approximate",
        HOLDS,
        _T + "kernels/test_features.py::test_features_average_to_the_kernel",
    ),
    Stated(
        "000, section 3.1",
        "integrating over W2 gives back the Gaussian process with covariance ΦΦᵀ + I/τ",
        HOLDS,
        _T + "kernels/test_features.py::test_weight_space_is_function_space",
    ),
    Stated(
        "000, section 3.4; 001, eqs 1 and 9",
        "the dropout objective is, up to scale and constants, minus the evidence lower "
        "bound",
        HOLDS,
        _T + "test_bound.py::test_minus_the_bound_is_the_dropout_objective",
    ),
    Stated(
        "000, eqs 12 and 14",
        "one sample per row gives an unbiased estimator of the bound",
        HOLDS,
        _T + "test_bound.py::test_a_batch_stands_for_all_rows",
    ),
    Stated(
        "000, proposition 1",
        "KL of a mixture of Gaussians ≈ Σ_i (p_i/2)(μ_iᵀμ_i + tr Σ_i - K - log|Σ_i|)",
        PARTLY,
        _T + "test_kl.py::test_exact_lies_between_the_bounds",
        "an upper bound; it leaves out the information that weights carry about being "
        "kept, at most the entropy of the mask, which matters if p is learned",
    ),
    Stated(
        "000, section 3.3",
        "KL(q(W1)||p(W1)) ≈ QK(σ² - log σ² - 1) + (p1/2) Σ m_qᵀm_q",
        FAILS,
        _T + "test_kl.py::test_reference_values",
        "the first term lacks a factor 1/2, as proposition 1 has it; a constant, so "
        "that no optimum changes",
    ),
    Stated(
        "000, section 3.3",
        "KL(q(b)||p(b)) = (mᵀm + K(σ² - log σ² - 1))/2",
        HOLDS,
        _T + "test_kl.py::test_bias_is_the_kl_of_torch",
    ),
    Stated(
        "000, sections 3.4 and 4.1",
        "the weight-decay for the dropped-out weights should be scaled by the "
        "probability of the weights to not be dropped",
        HOLDS,
        _T + "test_precision.py::test_the_objective_is_the_bound_rescaled",
        "for the weights before the division by p; for those that libraries store it "
        "is divided by it",
    ),
    Stated(
        "000, section 4.1",
        "multiplying by N(1, σ²) is an alternative approximating distribution",
        PARTLY,
        _T + "test_divergence.py::test_multiplied_rows_are_the_limit_of_a_narrow_"
        "gaussian",
        "the formula lacks the scale σ, and the noise must be one number a unit",
    ),
    Stated(
        "000, section 4.2",
        "a low rank covariance or more components are principled extensions",
        HOLDS,
        _T + "test_divergence.py::test_low_rank_is_that_of_torch",
        "that they can be computed; whether they predict better was not judged",
    ),
    Stated(
        "001, section 2",
        "infinitely wide networks with distributions over their weights converge to "
        "Gaussian processes",
        HOLDS,
        _T + "kernels/test_recursion.py::test_wide_networks_have_these_covariances",
    ),
    Stated(
        "001, section 3",
        "our results carry to other variants of dropout as well (such as drop-connect, "
        "multiplicative Gaussian noise, hashed neural networks, etc.)",
        PARTLY,
        "tests/noise/test_gaussian.py::test_the_decay_part_is_that_of_the_dropout_it_"
        "matches",
        "Gaussian noise, mixtures and relaxed masks; hashed networks were not tried",
    ),
    Stated(
        "001, eqs 10 and 11",
        "the mean of T passes estimates the predictive mean",
        HOLDS,
        "tests/predictive/test_gaussian.py::test_three_unit_net_exactly",
    ),
    Stated(
        "001, section 4",
        "the predictive variance equals the sample variance of T stochastic forward "
        "passes plus the inverse model precision",
        HOLDS,
        "tests/predictive/test_gaussian.py::test_moments_and_covariance_restated",
    ),
    Stated(
        "001, eq. 12",
        "τ = p l² / (2 N λ)",
        HOLDS,
        _T + "test_precision.py::test_reference_values",
        "for half the squared error; the released code has the squared error, which "
        "doubles it",
    ),
    Stated(
        "001, section 4",
        "the forward passes can be done concurrently, resulting in constant time "
        "complexity identical to that of standard dropout",
        OPEN,
        reason="a statement on machines; times of T passes in one call are in "
        "benchmarks/results/sampling.md",
    ),
    Stated(
        "001, abstract",
        "[uncertainty] without sacrificing either computational complexity or test "
        "accuracy",
        OPEN,
        reason="too broad for one verdict; errors of MC dropout and averaged weights "
        "are in mnist.md, convnet.md and ensemble.md",
    ),
    Stated(
        "001, section 5.1",
        "we attempted to fit the data with models with a smaller number of layers "
        "unsuccessfully",
        OPEN,
        reason="says of no failure how hard it was tried; such nets were not run",
    ),
    Stated(
        "001, section 5.3",
        "our model's running time (including BO) is comparable to PBP's Theano "
        "implementation",
        OPEN,
        reason="their programs and machines are not at hand",
    ),
    Stated(
        "001, Table 1",
        "Year Prediction MSD: 8.849, -3.588",
        OPEN,
        reason="the data could not be had here",
    ),
    Stated(
        "000, section 4.1",
        "by sampling Bernoulli variables for the bias weights as well, the model might "
        "become more robust",
        OPEN,
        reason="no experiment is described; it was not run",
    ),
    Stated(
        "000, section 4.1",
        "[the scaled decay] might explain why doubling the learning rate of the bias "
        "works well in practice in dropout networks with p = 0.5",
        OPEN,
        reason="an explanation that no experiment was named for",
    ),
    Stated(
        "002, eqs 8 to 10",
        "the posterior under the constraint is q(θ) exp(Σ π(m) log q(x|m∘θ)) / Z",
        HOLDS,
        _M + "test_transforms.py::test_log_density_gradient_and_map_are_those_of_the_"
        "sum_over_masks",
        "the formula is what the code computes; that it is the unique optimum is the "
        "paper's derivation, not tested",
    ),
    Stated(
        "002, section 2",
        "if p(θ̃|θ) = δ(θ̃ - θ) the expression reduces to Bayes' theorem",
        HOLDS,
        _M + "test_transforms.py::test_rate_zero_is_exactly_bayes",
    ),
    Stated(
        "002, section 2",
        "the naive generative model (eq. 3) is another one: a mixture weighted with "
        "the posterior probability",
        HOLDS,
        _M + "test_transforms.py::test_the_average_of_logs_is_below_the_log_of_"
        "averages",
    ),
    Stated(
        "002, eq. 13",
        "expected log likelihood of linear regression under dropout",
        HOLDS,
        _M + "linear/test_likelihood.py::test_enumeration_with_a_rate_per_feature",
    ),
    Stated(
        "002, eq. 14",
        "posterior with Λ = λ0 I + f(1 - f) Λ1 + (1 - f)² XᵀX, μ = (1 - f) Λ⁻¹Xᵀy",
        PARTLY,
        _M + "linear/test_posterior.py::test_density_is_prior_times_likelihoods_of_all_"
        "masks",
        "Λ and μ hold; the density printed omits its constant and the prior of σ",
    ),
    Stated(
        "002, section 2",
        "equal to the familiar Bayesian linear model in the limit f = 0",
        HOLDS,
        _M + "linear/test_posterior.py::test_nothing_dropped_is_ridge_regression",
    ),
    Stated(
        "002, section 2",
        "maximising [it] recovers learning with marginalized corrupted features",
        HOLDS,
        _M + "linear/test_posterior.py::test_dropout_training_ends_at_the_mean",
    ),
)
