"""What the words of a report mean, for somebody who decides by it."""

GLOSSARY = {
    "90 % interval": (
        "The range the model gives for one row. If it is calibrated, about 90 of 100 "
        "observed values lie inside."
    ),
    "coverage": (
        "Share of observed values that lie inside the intervals. It should equal what "
        "the intervals say: 90 % for 90 % intervals."
    ),
    "calibrated": (
        "Stated probabilities come true: of all things said with 80 % probability, "
        "about 80 % happen."
    ),
    "overconfident": (
        "More sure than it should be: intervals are too narrow, or probabilities too "
        "close to 0 and 100 %."
    ),
    "underconfident": (
        "Less sure than it could be: intervals are too wide, or probabilities too "
        "timid."
    ),
    "expected range": (
        "What chance alone would give in 95 of 100 cases, on as many rows, if the "
        "model were calibrated."
    ),
    "mean error": (
        "Distance between the prediction and the observed value, averaged over rows. "
        "In the units of the target."
    ),
    "RMSE": (
        "Root of the mean squared error: as the mean error, but large errors count "
        "more. In the units of the target."
    ),
    "width": (
        "Upper end minus lower end of an interval, averaged over rows: how precise "
        "the model claims to be. Narrow is good only if coverage is right."
    ),
    "spread": (
        "Standard deviation of a prediction: about two thirds of observed values "
        "should lie within one spread of it."
    ),
    "CRPS": (
        "Continuous ranked probability score: an error that also judges the stated "
        "uncertainty. In the units of the target; lower is better."
    ),
    "log-likelihood": (
        "Mean logarithm of the probability (density) that was given to what happened. "
        "Higher is better; it compares models on the same rows."
    ),
    "predicted spread": (
        "Standard deviation of a prediction: about two thirds of observed values "
        "should lie within one spread of it."
    ),
    "doubt": "One minus the confidence: the probability that the answer is wrong.",
    "accuracy": "Share of rows whose most probable class is the observed one.",
    "error rate": "Share of rows whose most probable class is not the observed one.",
    "confidence": "The probability that the model gives to its most probable class.",
    "Brier score": (
        "Squared distance between the probabilities and what happened, from 0 to 2; "
        "lower is better."
    ),
    "ECE": (
        "Expected calibration error: how far confidence and accuracy lie apart, "
        "averaged over rows. It is never exactly 0, even for right probabilities."
    ),
    "entropy": (
        "How spread out the class probabilities of a row are: 0 if one class has all "
        "of it. In nats."
    ),
    "mutual information": (
        "How much the draws of the model disagree about the class: doubt that more "
        "training data like this row would take away. In nats."
    ),
    "probability transform": (
        "The probability the model gave to a value below the observed one. If the "
        "model is calibrated, all values from 0 to 1 are equally frequent."
    ),
    "deferred": (
        "Handed to a person instead of being answered by the model; the rows the "
        "model is least sure of go first."
    ),
    "not known": (
        "Share of the variance that comes from what the model has not learned, and "
        "more data would reduce. The rest is noise that stays."
    ),
    "share explained": (
        "How much of the variation of the uncertainty between rows goes with this "
        "column alone: 0 % nothing, 100 % all of it. Not a cause."
    ),
    "AUROC": (
        "Probability that a row of the one kind has a higher score than a row of the "
        "other: 50 % is guessing, 100 % tells them apart always."
    ),
    "out of distribution": (
        "Unlike the rows the model was trained on, so that it cannot be expected to "
        "know."
    ),
    "out-of-distribution score": (
        "How unlike the training rows a row looks; higher is stranger. Given by "
        "whoever made this report."
    ),
    "rank correlation": (
        "Whether two numbers rise together: 1 always, 0 unrelated, −1 one falls as "
        "the other rises."
    ),
    "surprise": (
        "Distance between observation and prediction in units of the stated spread. "
        "Above 3 is rare for a calibrated model."
    ),
    "draws": (
        "Runs of the model with different parts of it switched off at random "
        "(dropout); how much they disagree is what the model does not know."
    ),
    "Monte Carlo error": (
        "How far a prediction would move if the draws were drawn anew; it shrinks with "
        "more draws."
    ),
    "site": "A place in the network where units are dropped at random.",
    "rate": "Probability that a unit is dropped at this site.",
    "fires in eval": (
        "Whether the noise is on even in the plain evaluation mode of the network."
    ),
    "baseline": (
        "What one gets without a model: the same answer for every row, namely the "
        "mean, or the most frequent class, of these rows."
    ),
}
