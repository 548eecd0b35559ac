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
_L = "tests/maxent/linear/"
_N = "tests/noise/"

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
        "eq. (14) is a scaled unbiased estimator of eq. (12)",
        HOLDS,
        _T + "test_bound.py::test_a_batch_stands_for_all_rows",
        "with the KL of proposition 1, and up to the constants that eq. 14 leaves out",
    ),
    Stated(
        "000, section 2.1",
        "[scaling by 1/p] is equivalent to initialising the weights W_i with scale "
        "1/p_i with no further scaling at training time, and at test time scaling the "
        "weights W_i by p_i",
        PARTLY,
        _N + "test_bernoulli.py::test_division_while_training_is_a_larger_start_but_"
        "another_step",
        "the functions are the same; a step of gradient descent is 1/p² times as long, "
        "and a penalty another",
    ),
    Stated(
        "000, section 3; 001, section 3",
        "the results derived are applicable to any network architecture that makes use "
        "of dropout exactly as it appears in practical applications",
        PARTLY,
        _N + "test_bernoulli.py::test_masks_of_pixels_are_no_masks_of_weights",
        "for masks on the inputs of a linear layer; usual dropout before a convolution "
        "has a mask for each pixel, which is no mask of the weights that all pixels "
        "share",
    ),
    Stated(
        "000, section 3.4",
        "the ratio [...] gives us the model precision: r1/r2 = (γτ/2)/(γ/2) = τ",
        PARTLY,
        _T + "test_precision.py::test_ratio_of_the_factors_of_loss_and_decay",
        "of the factors before the two sums of squares, without dropout; of r1 and r2 "
        "as eqs 1 and 3 have them it is 2Nτ/p, for biases 2Nτ",
    ),
    Stated(
        "000, section 3.4",
        "Empirically it seems that the Bernoulli approximating distribution is "
        "sufficient to considerably prevent overfitting",
        OPEN,
        reason="no experiment is described; networks with and without dropout are in "
        "convnet.md and table1_paper.md",
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
        "[multiplying the weights by N(1, σ²)] can be seen as an alternative "
        "approximating variational distribution where we set q(w_k) = m_k + m_k ε with "
        "ε ~ N(0, I)",
        PARTLY,
        _T + "test_divergence.py::test_multiplied_rows_are_the_limit_of_a_narrow_"
        "gaussian",
        "the formula lacks the scale σ, and the noise must be one number a unit",
    ),
    Stated(
        "000, section 4.1",
        "it is possible to interpret dropout as doing so [a distribution over the "
        "bias] when used with non-linearities with σ(0) = 0",
        HOLDS,
        _N + "test_bernoulli.py::test_masks_pass_through_nonlinearities_that_are_0_at_"
        "0",
    ),
    Stated(
        "000, section 4.2",
        "principled extensions of dropout [...] non-diminishing σ² [...] a mixture of "
        "Gaussians with more than two components [...] a low rank covariance matrix",
        HOLDS,
        _T + "test_divergence.py::test_low_rank_is_that_of_torch",
        "that they can be computed; whether they predict better was not judged",
    ),
    Stated(
        "001, section 2",
        "infinitely wide (single hidden layer) NNs with distributions placed over "
        "their weights converge to Gaussian processes",
        HOLDS,
        _T + "kernels/test_recursion.py::test_wide_networks_have_these_covariances",
    ),
    Stated(
        "001, section 2",
        "[variational inference:] the number of parameters in these models is doubled "
        "for the same network size",
        HOLDS,
        _N + "test_factorised.py::test_it_has_twice_the_parameters",
        "of independent Gaussians",
    ),
    Stated(
        "001, section 3",
        "our results carry to other variants of dropout as well (such as drop-connect, "
        "multiplicative Gaussian noise, hashed neural networks, etc.)",
        PARTLY,
        "tests/noise/test_gaussian.py::test_the_decay_part_is_that_of_the_dropout_it_"
        "matches",
        "drop-connect, Gaussian noise, mixtures and relaxed masks have bounds of their "
        "own; hashed networks were not tried",
    ),
    Stated(
        "001, eqs 10 and 11",
        "the mean of T passes estimates the predictive mean",
        HOLDS,
        "tests/predictive/test_gaussian.py::test_three_unit_net_exactly",
    ),
    Stated(
        "001, eq. 13",
        "log p(y*|x*) ≈ logsumexp(-½ τ ‖y - ŷ_t‖²) - log T - ½ log 2π - ½ log τ⁻¹",
        PARTLY,
        "tests/predictive/test_gaussian.py::test_log_prob_is_that_of_the_mixture",
        "for one output; of D outputs the last two terms count D times",
    ),
    Stated(
        "001, section 4",
        "[the predictive variance] equals the sample variance of T stochastic forward "
        "passes through the NN plus the inverse model precision",
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
        "Our predictive distribution q(y*|x*) is expected to be highly multi-modal",
        OPEN,
        reason="an expectation; the weights of a unit have two modes, a sum over many "
        "units tends to have one",
    ),
    Stated(
        "001, section 5.1",
        "the moments of the dropout models converge to the moments of the GP – its "
        "mean and uncertainty",
        FAILS,
        _T + "test_bound.py::test_moments_of_dropout_are_not_those_of_the_process",
        "with one weight both are in closed form: the mean is p times that of the "
        "process, and the variance grows with y; of deep networks only numbers are "
        "known, in co2.md and solar.md",
    ),
    Stated(
        "001, section 6",
        "each GP covariance function has a one-to-one correspondence with the "
        "combination of both NN non-linearities and weight regularisation",
        FAILS,
        _T + "kernels/test_network.py::test_several_nonlinearities_have_one_kernel",
        "σ and -σ have the same",
    ),
    Stated(
        "001, section 6",
        "if one expects the function to be smooth and the uncertainty to increase far "
        "from the data, cosine non-linearities and L2 regularisation might be "
        "appropriate",
        OPEN,
        reason="advice; the variance of that process is bounded (E74, E75)",
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
        "This might explain why doubling the learning rate of the bias during MLP "
        "optimisation works well in practice in dropout networks with p = 0.5",
        OPEN,
        reason="an explanation that no experiment was named for",
    ),
    Stated(
        "002, eqs 1, 6 and 8",
        "S[p, q] = ∫ p log(p/q) [...] The distribution which uniquely maximizes this "
        "functional",
        FAILS,
        _M + "test_transforms.py::test_the_posterior_has_the_least_divergence_under_"
        "the_constraints",
        "a minus is missing: what is printed is the divergence, of which eq. 10 is the "
        "minimum",
    ),
    Stated(
        "002, eqs 8 to 10",
        "the posterior under the constraint is q(θ) exp(Σ π(m) log q(x|m∘θ)) / Z",
        HOLDS,
        _M + "test_transforms.py::test_the_posterior_has_the_least_divergence_under_"
        "the_constraints",
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
        "002, eq. 11",
        "a conjugated Bayesian linear regression model [...] σ² ~ Gamma(a0, b0) [...] "
        "the limit a0, b0 → 0 corresponding to the Jeffreys prior",
        PARTLY,
        _L + "test_posterior.py::test_the_conjugate_prior_of_the_variance_is_the_"
        "inverse_gamma",
        "conjugate is the inverse gamma; the limit is the same",
    ),
    Stated(
        "002, eq. 13",
        "expected log likelihood of linear regression under dropout",
        HOLDS,
        _L + "test_likelihood.py::test_enumeration_with_a_rate_per_feature",
    ),
    Stated(
        "002, eq. 14",
        "posterior with Λ = λ0 I + f(1 - f) Λ1 + (1 - f)² XᵀX, μ = (1 - f) Λ⁻¹Xᵀy",
        PARTLY,
        _L + "test_posterior.py::test_density_is_prior_times_likelihoods_of_all_masks",
        "Λ and μ hold; the density printed omits its constant and the prior of σ",
    ),
    Stated(
        "002, section 2",
        "equal to the familiar Bayesian linear model in the limit f = 0",
        HOLDS,
        _L + "test_posterior.py::test_nothing_dropped_is_ridge_regression",
    ),
    Stated(
        "002, section 2",
        "removing the prior term λ0 and taking the maximum likelihood of eq. 14 with "
        "respect to w while keeping σ constant recover the expression for learning "
        "with marginalized corrupted features",
        HOLDS,
        _L + "test_posterior.py::test_marginalised_corrupted_features_are_the_effective"
        "_weights",
        "for (1 - f) w, if their corruption divides by 1 - f what it keeps",
    ),
    Stated(
        "002, section 2",
        "The weights of larger features are regularized more heavily by dropout than "
        "by ridge regression",
        HOLDS,
        _L + "test_posterior.py::test_weights_of_larger_features_are_penalised_more",
    ),
)
