/* Rows absorbed one after the other by one network: learning.py's absorbed(), in C.

   Weights of a layer are stored (inputs + 1, outputs), so that inner loops run over
   outputs and need no sums; the bias is the last input. No state, only the C library. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define ROOT_HALF 0.70710678118654752440
#define DENSITY 0.39894228040143267794
#define FAR 40.0 /* beyond, a normal density is below the smallest number there is */
#define LEAST_VARIANCE 1e-100

/* What a pass leaves for the way back, for the units of one layer. */
typedef struct {
    double *mean, *variance;            /* of what enters, with the bias */
    double *out_mean, *out_variance;    /* of what leaves, before the rectifier */
    double *above, *below, *ratio;      /* of the rectifier that follows */
    double *by_mean, *by_variance;      /* slopes of log Z by what leaves */
} unit_t;

int64_t pbp_work_size(int64_t n_layers, const int64_t *widths)
{
    int64_t size = 0;
    for (int64_t l = 0; l < n_layers; l++)
        size += 2 * (widths[l] + 1) + 7 * widths[l + 1];
    return size;
}

static void forward(const double *restrict m, const double *restrict v, unit_t *u,
                    int64_t n_in, int64_t n_out, int certain)
{
    double *restrict mean = u->out_mean, *restrict variance = u->out_variance;
    memset(mean, 0, n_out * sizeof *mean);
    memset(variance, 0, n_out * sizeof *variance);
    for (int64_t i = 0; i < n_in; i++) {
        const double z = u->mean[i], w = certain ? 0.0 : u->variance[i];
        const double second = z * z + w;
        const double *restrict mi = m + i * n_out, *restrict vi = v + i * n_out;
        for (int64_t o = 0; o < n_out; o++) { /* E172 */
            mean[o] += mi[o] * z;
            variance[o] += vi[o] * second + mi[o] * mi[o] * w;
        }
    }
    const double scale = sqrt((double)n_in);
    for (int64_t o = 0; o < n_out; o++) {
        mean[o] /= scale;
        variance[o] /= n_in;
    }
}

static void rectify(unit_t *u, unit_t *next, int64_t n)
{
    for (int64_t o = 0; o < n; o++) {
        const double m = u->out_mean[o], v = u->out_variance[o], std = sqrt(v);
        const double alpha = m / std, t = fmin(fabs(alpha), FAR);
        const double density = DENSITY * exp(-0.5 * t * t);
        const double tail = 0.5 * erfc(ROOT_HALF * t);
        const double first = fmax(density - t * tail, 0.0); /* E170 */
        const double second = tail - t * first;
        const double spread =
            (alpha < 0 ? second : 1.0 - second - 2.0 * t * first) - first * first;
        u->above[o] = alpha < 0 ? tail : 1.0 - tail;
        u->below[o] = alpha < 0 ? 1.0 - tail : tail;
        u->ratio[o] = density / std;
        next->mean[o] = fmax(m, 0.0) + std * first;
        next->variance[o] = v * fmax(spread, 0.0);
    }
}

/* Slopes of a layer's inputs, through the rectifier before it. */
static void backward(const double *restrict m, const double *restrict v,
                     const unit_t *u, unit_t *below, int64_t n_in, int64_t n_out)
{
    const double scale = sqrt((double)n_in);
    for (int64_t i = 0; i < n_in - 1; i++) {
        const double *restrict mi = m + i * n_out, *restrict vi = v + i * n_out;
        double by_m = 0.0, by_v = 0.0, spread = 0.0;
        for (int64_t o = 0; o < n_out; o++) {
            by_m += u->by_mean[o] * mi[o];
            spread += u->by_variance[o] * vi[o];
            by_v += u->by_variance[o] * (vi[o] + mi[o] * mi[o]);
        }
        const double d_mean = by_m / scale + 2.0 * u->mean[i] * spread / n_in;
        const double d_variance = by_v / n_in;
        const double mean = u->mean[i], ratio = below->ratio[i];
        /* E171 */
        below->by_mean[i] =
            d_mean * below->above[i] + d_variance * 2.0 * mean * below->below[i];
        below->by_variance[i] = d_mean * 0.5 * ratio
                                + d_variance * (below->above[i] - mean * ratio);
    }
}

static void update(double *restrict m, double *restrict v, const unit_t *u, int64_t n_in,
                   int64_t n_out, int certain)
{
    const double scale = sqrt((double)n_in);
    for (int64_t i = 0; i < n_in; i++) {
        const double z = u->mean[i] / scale, w = certain ? 0.0 : u->variance[i];
        const double second = (u->mean[i] * u->mean[i] + w) / n_in;
        const double twice = 2.0 * w / n_in;
        double *restrict mi = m + i * n_out, *restrict vi = v + i * n_out;
        const double *restrict by_m = u->by_mean, *restrict by_v = u->by_variance;
        for (int64_t o = 0; o < n_out; o++) { /* E173 */
            const double step = vi[o] * (by_m[o] * z + twice * by_v[o] * mi[o]);
            const double mean = mi[o] + step;
            const double variance =
                vi[o] * (1.0 + 2.0 * vi[o] * by_v[o] * second) - step * step;
            const int good =
                variance > LEAST_VARIANCE && variance < INFINITY && fabs(mean) < INFINITY;
            mi[o] = good ? mean : mi[o];
            vi[o] = good ? variance : vi[o];
        }
    }
}

static void observe(double *gamma, double y, unit_t *out)
{
    const double a = gamma[0], b = gamma[1], error = y - out->out_mean[0];
    double log_z[3], total = 0.0;
    for (int k = 2; k >= 0; k--) { /* E174 */
        total = out->out_variance[0] + b / (a + (k - 1));
        log_z[k] = -0.5 * (log(total) + error * error / total);
    }
    const double bend = log_z[2] - 2.0 * log_z[1] + log_z[0]; /* E175 */
    const double shape = 1.0 / expm1(bend + log1p(1.0 / a));
    const double rate = b * exp(log_z[1] - log_z[2]) / (1.0 - a * expm1(-bend));
    if (shape > 1.0 && rate > 0.0 && shape < INFINITY && rate < INFINITY) {
        gamma[0] = shape;
        gamma[1] = rate;
    }
    out->by_mean[0] = error / total; /* E177 */
    out->by_variance[0] = 0.5 * (error * error / total - 1.0) / total;
}

/* x (rows, inputs + 1), a 1 at the end of each; all arrays of one network. */
void pbp_absorb(int64_t n_layers, const int64_t *widths, double *mean, double *variance,
                double *gamma, const double *x, const double *y, int64_t n_rows,
                double *work)
{
    unit_t units[32];
    int64_t starts[32], start = 0;
    for (int64_t l = 0; l < n_layers; l++) {
        const int64_t n_in = widths[l] + 1, n_out = widths[l + 1];
        double **parts[] = {&units[l].out_mean, &units[l].out_variance, &units[l].above,
                            &units[l].below,    &units[l].ratio,        &units[l].by_mean,
                            &units[l].by_variance};
        units[l].mean = work;
        units[l].variance = work + n_in;
        work += 2 * n_in;
        for (int part = 0; part < 7; part++, work += n_out)
            *parts[part] = work;
        units[l].mean[n_in - 1] = 1.0;
        units[l].variance[n_in - 1] = 0.0;
        starts[l] = start;
        start += n_in * n_out;
    }
    const int64_t last = n_layers - 1;
    for (int64_t row = 0; row < n_rows; row++) {
        memcpy(units[0].mean, x + row * (widths[0] + 1), widths[0] * sizeof *x);
        for (int64_t l = 0; l <= last; l++) {
            forward(mean + starts[l], variance + starts[l], &units[l], widths[l] + 1,
                    widths[l + 1], l == 0);
            if (l < last)
                rectify(&units[l], &units[l + 1], widths[l + 1]);
        }
        observe(gamma, y[row], &units[last]);
        for (int64_t l = last; l >= 0; l--) {
            double *m = mean + starts[l], *v = variance + starts[l];
            if (l > 0)
                backward(m, v, &units[l], &units[l - 1], widths[l] + 1, widths[l + 1]);
            update(m, v, &units[l], widths[l] + 1, widths[l + 1], l == 0);
        }
    }
}
