/* One perceptron with noise on its units, trained by Adam: forward, backward, update.

   The same sums as stack.py, for one network at a time, so that all it touches stays in
   the first caches. Python makes the order of rows and the rates (compiled.py); the bits
   of masks are made here, by the generator that numpy calls SFC64. There is no state
   outside of the arguments, so any number of threads may be in here at once.

   Layout. "Packed" parameters are padded with zeros to whole vectors: a layer is W
   (inputs, padded outputs), or, with few outputs, its transpose (outputs, padded inputs),
   then its biases. Activations are (rows, padded units). Padding stays zero: where a
   non-linearity is not zero at zero, it is cleared.

   No -ffast-math: it would change the rounding mode of whole processes, and NaN must
   stay NaN, as a network that diverged is told by it. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VERSION 2
#define MOST_LAYERS 32 /* weight layers */
#define NARROW 4       /* outputs up to which a layer is kept transposed */

#if defined(__AVX512F__)
#define LANES 16
#define TALL 8 /* rows of a block of a product that stays in registers */
#else
#define LANES 8
#define TALL 6
#endif
#define WIDE 2 /* vectors of such a block */
#define LARGE 4096 /* numbers of a matrix that fills half of the first cache */

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int64_t big;

enum { RELU, TANH, COS, SIN, LEAKY_RELU, ELU, SIGMOID, SOFTPLUS, SILU, GELU, IDENTITY };
enum { SQUARED_ERROR, GAUSSIAN_WITH_PRECISION, SOFTMAX };
enum { QUIET, MASKS, NORMAL };

typedef struct {
    big n_layers;
    const big *widths; /* inputs, hidden …, outputs */
    big batch, n_targets, activation, objective;
    float leak, log_precision_limit;
    float beta; /* of a noise head: rows weigh precision^-beta in its slope */
} Network;

typedef struct {
    float *weights, *mean, *square, *best; /* packed */
    const float *decay;                    /* packed */
    float *work;
    const float *x; /* (rows, padded inputs) */
    const float *y; /* (rows, targets) */
    const big *places;            /* (steps, batch) */
    const float *share;           /* (steps, batch) */
    const float *rates, *epsilons; /* (steps,) */
    big noise;
    uint64_t *state;           /* of SFC64 */
    const float *normals;      /* (steps, batch x all units), and LANES more */
    const int32_t *thresholds; /* per layer, for masks */
    const float *scales;       /* per layer: 1/keep_prob, or the sd of factors */
    big n_steps, step, total;  /* to do now; done before; of the whole training */
    big every, patience;       /* of looks at rows held out; every = 0: none */
    const float *held_x, *held_y;
    big n_held;
    double least;
    big looks, misses, when;
} Run;

typedef struct {
    big in, out, in_pad, out_pad, narrow;
    big weight, bias, packed; /* offsets in packed parameters, and the size there */
    big units, slopes;        /* offsets in the work space */
} Layer;

typedef struct {
    big n, batch, packed, fan_in, size;
    big sums, back, gradient, room, bits; /* offsets in the work space */
    Layer layer[MOST_LAYERS];
} Plan;

static big padded(big n) { return (n + LANES - 1) / LANES * LANES; }

static void plan_of(const Network *net, Plan *plan) {
    big offset = 0, work = 0, widest = 0;
    memset(plan, 0, sizeof *plan);
    plan->n = net->n_layers;
    plan->batch = net->batch;
    for (big l = 0; l < plan->n; l++) {
        Layer *own = &plan->layer[l];
        own->in = net->widths[l];
        own->out = net->widths[l + 1];
        own->in_pad = padded(own->in);
        own->out_pad = padded(own->out);
        own->narrow = own->out <= NARROW;
        own->weight = offset;
        offset += own->narrow ? own->out * own->in_pad : own->in * own->out_pad;
        own->bias = offset;
        offset += own->out_pad;
        own->units = work;
        work += plan->batch * own->in_pad;
        own->slopes = work;
        work += plan->batch * own->in_pad;
        plan->fan_in += own->in;
        if (own->in_pad > widest) widest = own->in_pad;
        if (own->out_pad > widest) widest = own->out_pad;
    }
    plan->packed = offset;
    plan->sums = work;
    work += plan->batch * plan->layer[plan->n - 1].out_pad;
    plan->back = work;
    work += 2 * plan->batch * widest;
    plan->gradient = work;
    work += offset;
    plan->room = work;
    work += WIDE * LANES * (widest > plan->batch ? widest : plan->batch);
    plan->bits = padded(work); /* rows are read LANES at a time, past their end */
    plan->size = plan->bits + padded(plan->batch * plan->fan_in / 2 + 2 * LANES + 8);
}

/* Vectors and products */

INLINE vec load(const float *from) { return *(const vec *)from; }
INLINE void store(float *to, vec value) { *(vec *)to = value; }

INLINE float total(vec value) {
    float part[LANES];
    store(part, value);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) part[i] += part[i + half];
    return part[0];
}

/* A block of c = start + a b, in registers: a (rows, depth) by two strides. */
INLINE void block(const int rows, const int vecs, big depth, const float *a, big a_row,
                  big a_step, const float *b, big b_step, const float *start, float *c,
                  big c_row) {
    vec sum[TALL][WIDE];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            sum[r][v] = start ? load(start + v * LANES) : (vec){0};
    for (big k = 0; k < depth; k++) {
        vec right[WIDE];
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++) right[v] = load(b + k * b_step + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const float left = a[r * a_row + k * a_step];
#pragma GCC unroll 2
            for (int v = 0; v < vecs; v++) sum[r][v] += left * right[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++) store(c + r * c_row + v * LANES, sum[r][v]);
}

INLINE void panel(const int vecs, big m, big depth, const float *a, big a_row,
                  big a_step, const float *b, big b_step, const float *start, float *c,
                  big c_row) {
    big row = 0;
    for (; row + TALL <= m; row += TALL)
        block(TALL, vecs, depth, a + row * a_row, a_row, a_step, b, b_step, start,
              c + row * c_row, c_row);
    a += row * a_row;
    c += row * c_row;
#define LAST(rows)                                                                     \
    case rows:                                                                         \
        block(rows, vecs, depth, a, a_row, a_step, b, b_step, start, c, c_row);        \
        break;
    switch (m - row) {
        LAST(1) LAST(2) LAST(3) LAST(4) LAST(5)
#if TALL == 8
        LAST(6) LAST(7)
#endif
    default: break;
    }
#undef LAST
}

/* c (m, n) = start (n) + a (m, depth) b (depth, n); n is a multiple of LANES. Columns of
   a large b are copied to room, as they lie too far apart for the cache. */
static void product(big m, big n, big depth, const float *a, big a_row, big a_step,
                    const float *b, big b_step, const float *start, float *c,
                    big c_row, float *room) {
    const int is_large = depth * b_step > LARGE && m > 2 * TALL;
    for (big j = 0; j < n; j += WIDE * LANES) {
        const float *from = start ? start + j : 0, *own = b + j;
        const big width = n - j >= WIDE * LANES ? WIDE * LANES : LANES;
        big step = b_step;
        if (is_large) {
            for (big k = 0; k < depth; k++)
                memcpy(room + k * width, own + k * step, sizeof(float) * width);
            own = room;
            step = width;
        }
        if (width > LANES)
            panel(WIDE, m, depth, a, a_row, a_step, own, step, from, c + j, c_row);
        else
            panel(1, m, depth, a, a_row, a_step, own, step, from, c + j, c_row);
    }
}

/* Columns ``first`` to ``first + width`` of the transpose of w (rows, columns) as
   (columns, width), zeros beyond its rows. Eight rows at a time: rows that lie a power of
   two apart share few lines of the cache. */
static void turn(big rows, big columns, const float *w, big w_row, big first, big width,
                 float *room) {
    for (big i = 0; i < width; i += 8) {
        const float *from = w + (first + i) * w_row;
        const big there = rows - first - i;
        if (there >= 8) {
            for (big k = 0; k < columns; k++)
#pragma GCC unroll 8
                for (int r = 0; r < 8; r++) room[k * width + i + r] = from[r * w_row + k];
        } else {
            for (big k = 0; k < columns; k++)
                for (big r = 0; r < 8; r++)
                    room[k * width + i + r] = r < there ? from[r * w_row + k] : 0.0f;
        }
    }
}

/* c (m, n) = a (m, depth) w', of w (rows, depth) with n >= rows, a multiple of LANES. */
static void product_turned(big m, big n, big depth, const float *a, big a_row,
                           const float *w, big rows, big w_row, float *c, big c_row,
                           float *room) {
    for (big j = 0; j < n; j += WIDE * LANES) {
        const big width = n - j >= WIDE * LANES ? WIDE * LANES : LANES;
        turn(rows, depth, w, w_row, j, width, room);
        if (width > LANES)
            panel(WIDE, m, depth, a, a_row, 1, room, width, 0, c + j, c_row);
        else
            panel(1, m, depth, a, a_row, 1, room, width, 0, c + j, c_row);
    }
}

/* Functions of one number, without branches, so that compilers make vectors of them.
   Within a few units of the last place of libm's. */

INLINE uint32_t as_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

INLINE float as_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

#define MAGIC 12582912.0f /* 1.5 2^23: a sum with it is rounded to a whole number */

INLINE float power_of_two(int32_t n) { return as_float((uint32_t)(n + 127) << 23); }

/* e^x = 2^n (1 + m), with |x - n log 2| <= log(2)/2 */
INLINE float exponent(float x, int32_t *n) {
    const float shifted = x * 1.44269504089f + MAGIC;
    const float whole = shifted - MAGIC;
    float r = x - whole * 0.693359375f;
    r = r + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    *n = (int32_t)(as_bits(shifted) - as_bits(MAGIC));
    return p * r * r + r;
}

INLINE float exp_of(float x) {
    int32_t n;
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float more = exponent(x, &n);
    const int32_t half = n >> 1;
    return (1.0f + more) * power_of_two(half) * power_of_two(n - half);
}

INLINE float expm1_of_negative(float x) {
    int32_t n;
    x = x > 0.0f ? 0.0f : x;
    x = x < -20.0f ? -20.0f : x;
    const float more = exponent(x, &n), scale = power_of_two(n);
    return scale * more + (scale - 1.0f);
}

INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

INLINE float tanh_of(float x) {
    const float s = x * x;
    float p = -5.70498872745e-3f;
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    const float small = p * s * x + x;
    const float large = 1.0f - 2.0f / (exp_of(2.0f * fabsf(x)) + 1.0f);
    return fabsf(x) < 0.625f ? small : (x < 0.0f ? -large : large);
}

/* log(1 + u) for 0 <= u <= 1 */
INLINE float log1p_of_share(float u) {
    const float sum = 1.0f + u;
    const int high = sum > 1.41421356f;
    const float m = (high ? 0.5f * sum : sum) - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const float log = p * m * m * m - 0.5f * m * m + m + (high ? 0.693147181f : 0.0f);
    const float lost = u - (sum - 1.0f); /* what rounding took from the sum */
    return log + lost / sum;
}

INLINE float softplus_of(float x) {
    return (x > 0.0f ? x : 0.0f) + log1p_of_share(exp_of(-fabsf(x)));
}

INLINE float erf_of(float x) {
    const float t = fabsf(x), s = x * x;
    float p = -1.72853470e-5f * t + 3.83197126e-4f;
    const float q = -3.88396438e-3f * t + 2.42546219e-2f;
    p = p * s + q;
    p = p * t - 1.06777877e-1f;
    p = p * t - 6.34846687e-1f;
    p = p * t - 1.28717512e-1f;
    p = p * t - t;
    const float large = 1.0f - exp_of(p);
    float r = -5.96761703e-4f;
    r = r * s + 4.99119423e-3f;
    r = r * s - 2.67681349e-2f;
    r = r * s + 1.12819925e-1f;
    r = r * s - 3.76125336e-1f;
    r = r * s + 1.28379166e-1f;
    const float small = r * x + x;
    return t > 0.927734375f ? (x < 0.0f ? -large : large) : small;
}

#define FAR 8192.0f /* up to here; libm's beyond */

INLINE void sine_and_cosine(float x, float *sine, float *cosine) {
    const float shifted = x * 0.636619772f + MAGIC;
    const float whole = shifted - MAGIC;
    const uint32_t quarter = as_bits(shifted) - as_bits(MAGIC);
    float r = x - whole * 1.5703125f;
    r = r - whole * 4.837512969970703125e-4f;
    r = r - whole * 7.54978995489188216e-8f;
    const float s = r * r;
    const float odd =
        ((-1.9515295891e-4f * s + 8.3321608736e-3f) * s - 1.6666654611e-1f) * s * r + r;
    const float even = ((2.443315711809948e-5f * s - 1.388731625493765e-3f) * s +
                        4.166664568298827e-2f) * s * s - 0.5f * s + 1.0f;
    const float a = quarter & 1 ? even : odd, b = quarter & 1 ? odd : even;
    *sine = quarter & 2 ? -a : a;
    *cosine = (quarter + 1) & 2 ? -b : b;
}

static int any_far(big n, const float *z) {
    int found = 0;
    for (big i = 0; i < n; i++) found |= !(fabsf(z[i]) < FAR);
    return found;
}

/* h = f(z), and z becomes f'(z). */
static void activate(big kind, float leak, big n, float *restrict z,
                     float *restrict h) {
    switch (kind) {
    case RELU: /* NaN stays NaN in both, as in torch */
        for (big i = 0; i < n; i++) {
            const float a = z[i];
            h[i] = a < 0.0f ? 0.0f : a;
            z[i] = a > 0.0f ? 1.0f : 0.0f;
        }
        break;
    case TANH:
        for (big i = 0; i < n; i++) {
            const float a = tanh_of(z[i]);
            h[i] = a;
            z[i] = 1.0f - a * a;
        }
        break;
    case COS:
    case SIN:
        if (any_far(n, z)) {
            for (big i = 0; i < n; i++) {
                const float a = z[i];
                h[i] = kind == COS ? cosf(a) : sinf(a);
                z[i] = kind == COS ? -sinf(a) : cosf(a);
            }
        } else {
            for (big i = 0; i < n; i++) {
                float sine, cosine;
                sine_and_cosine(z[i], &sine, &cosine);
                h[i] = kind == COS ? cosine : sine;
                z[i] = kind == COS ? -sine : cosine;
            }
        }
        break;
    case LEAKY_RELU:
        for (big i = 0; i < n; i++) {
            const float a = z[i], slope = a > 0.0f ? 1.0f : leak;
            h[i] = a * slope;
            z[i] = slope;
        }
        break;
    case ELU:
        for (big i = 0; i < n; i++) {
            const float a = z[i], b = expm1_of_negative(a);
            h[i] = a > 0.0f ? a : b;
            z[i] = a > 0.0f ? 1.0f : b + 1.0f;
        }
        break;
    case SIGMOID:
        for (big i = 0; i < n; i++) {
            const float a = sigmoid_of(z[i]);
            h[i] = a;
            z[i] = a * (1.0f - a);
        }
        break;
    case SOFTPLUS:
        for (big i = 0; i < n; i++) {
            const float a = z[i];
            h[i] = softplus_of(a);
            z[i] = sigmoid_of(a);
        }
        break;
    case SILU:
        for (big i = 0; i < n; i++) {
            const float a = z[i], gate = sigmoid_of(a), b = a * gate;
            h[i] = b;
            z[i] = gate + b * (1.0f - gate);
        }
        break;
    case GELU:
        for (big i = 0; i < n; i++) {
            const float a = z[i], below = 0.5f + 0.5f * erf_of(a * 0.707106781f);
            h[i] = a * below;
            z[i] = below + a * 0.398942280f * exp_of(-0.5f * a * a);
        }
        break;
    default:
        for (big i = 0; i < n; i++) {
            h[i] = z[i];
            z[i] = 1.0f;
        }
    }
}

static int moves_zero(big kind) {
    return kind == COS || kind == SIGMOID || kind == SOFTPLUS;
}

/* Noise */

static void make_bits(uint64_t *restrict state, big n, uint64_t *restrict into) {
    uint64_t a = state[0], b = state[1], c = state[2], counter = state[3];
    for (big i = 0; i < n; i++) {
        const uint64_t next = a + b + counter++;
        a = b ^ (b >> 11);
        b = c + (c << 3);
        c = ((c << 24) | (c >> 40)) + next;
        into[i] = next;
    }
    state[0] = a, state[1] = b, state[2] = c, state[3] = counter;
}

/* Multiply rows of units, and of slopes if there are any, by factors. */
static void mask(big rows, big units, big pad, const int16_t *bits, int32_t threshold,
                 float scale, float *h, float *slopes) {
    for (big row = 0; row < rows; row++) {
        const int16_t *restrict own = bits + row * units;
        float *restrict a = h + row * pad;
        if (slopes) {
            float *restrict s = slopes + row * pad;
            for (big u = 0; u < pad; u++) {
                const float factor = own[u] >= threshold ? scale : 0.0f;
                a[u] *= factor;
                s[u] *= factor;
            }
        } else {
            for (big u = 0; u < pad; u++)
                a[u] *= own[u] >= threshold ? scale : 0.0f;
        }
    }
}

static void blur(big rows, big units, big pad, const float *normals, float sd, float *h,
                 float *slopes) {
    for (big row = 0; row < rows; row++) {
        const float *restrict own = normals + row * units;
        float *restrict a = h + row * pad, *s = slopes ? slopes + row * pad : 0;
        for (big u = 0; u < units; u++) a[u] *= own[u] * sd + 1.0f;
        if (s)
            for (big u = 0; u < units; u++) s[u] *= own[u] * sd + 1.0f;
    }
}

/* The noise on the input of layer l, which starts at number ``first`` of the step. */
static void disturb(const Plan *plan, const Run *run, big l, big step, big first,
                    float *h, float *slopes) {
    const Layer *own = &plan->layer[l];
    if (run->noise == MASKS && run->thresholds[l] > INT16_MIN) {
        const int16_t *bits = (const int16_t *)(run->work + plan->bits);
        mask(plan->batch, own->in, own->in_pad, bits + first, run->thresholds[l],
             run->scales[l], h, slopes);
    } else if (run->noise == NORMAL && run->scales[l] != 0.0f) {
        const float *normals = run->normals + step * plan->batch * plan->fan_in;
        blur(plan->batch, own->in, own->in_pad, normals + first, run->scales[l], h,
             slopes);
    }
}

/* Forward and backward */

/* Sums of a layer for some rows of units: z = bias + h W. */
static void sums(const Layer *own, const float *weights, big rows, const float *h,
                 float *z, float *room) {
    const float *weight = weights + own->weight, *bias = weights + own->bias;
    if (!own->narrow) {
        product(rows, own->out_pad, own->in, h, own->in_pad, 1, weight, own->out_pad,
                bias, z, own->out_pad, room);
        return;
    }
    for (big row = 0; row < rows; row++) {
        memcpy(z + row * own->out_pad, bias, sizeof(float) * own->out_pad);
        for (big o = 0; o < own->out; o++) {
            vec sum = {0};
            for (big i = 0; i < own->in_pad; i += LANES)
                sum += load(h + row * own->in_pad + i) *
                       load(weight + o * own->in_pad + i);
            z[row * own->out_pad + o] += total(sum);
        }
    }
}

/* Units of layer l from its sums, which become slopes; padding is cleared. */
static void units_of(const Network *net, const Layer *own, big rows, float *z, float *h) {
    activate(net->activation, net->leak, rows * own->in_pad, z, h);
    if (own->in_pad > own->in && moves_zero(net->activation))
        for (big row = 0; row < rows; row++)
            memset(h + row * own->in_pad + own->in, 0,
                   sizeof(float) * (own->in_pad - own->in));
}

/* Derivative of a row's loss in its outputs, times its share. */
static void slope_of_loss(const Network *net, big n, const float *z, const float *y,
                          float share, float *into) {
    if (net->objective == SQUARED_ERROR) {
        for (big i = 0; i < n; i++) into[i] = (z[i] - y[i]) * share;
    } else if (net->objective == GAUSSIAN_WITH_PRECISION) {
        const big half = n / 2;
        const float limit = net->log_precision_limit;
        for (big i = 0; i < half; i++) {
            const float log = z[half + i], gap = z[i] - y[i];
            const float bounded = log > limit ? limit : (log < -limit ? -limit : log);
            const float pull = exp_of(bounded) * gap;
            const float is_free = fabsf(log) < limit ? 1.0f : 0.0f;
            const float own =
                net->beta > 0.0f ? share * exp_of(-net->beta * bounded) : share;
            into[i] = pull * own;
            into[half + i] = 0.5f * (pull * gap - 1.0f) * is_free * own;
        }
    } else {
        const big hit = (big)y[0];
        float top = z[0], sum = 0.0f;
        for (big i = 1; i < n; i++) top = z[i] > top ? z[i] : top;
        for (big i = 0; i < n; i++) sum += into[i] = exp_of(z[i] - top);
        for (big i = 0; i < n; i++)
            into[i] = (into[i] / sum - (i == hit ? 1.0f : 0.0f)) * share;
    }
}

static double loss_of(const Network *net, big n, const float *z, const float *y) {
    double loss = 0.0;
    if (net->objective == SQUARED_ERROR) {
        for (big i = 0; i < n; i++) loss += 0.5 * (z[i] - y[i]) * (z[i] - y[i]);
    } else if (net->objective == GAUSSIAN_WITH_PRECISION) {
        const big half = n / 2;
        const float limit = net->log_precision_limit;
        for (big i = 0; i < half; i++) {
            const float log = z[half + i], gap = z[i] - y[i];
            const float bounded = log > limit ? limit : (log < -limit ? -limit : log);
            loss += 0.5 * ((double)exp_of(bounded) * gap * gap - bounded);
        }
    } else {
        double sum = 0.0;
        float top = z[0];
        for (big i = 1; i < n; i++) top = z[i] > top ? z[i] : top;
        for (big i = 0; i < n; i++) sum += exp_of(z[i] - top);
        loss = log(sum) - (z[(big)y[0]] - top);
    }
    return loss;
}

/* Write the gradient of the mean loss of the step's rows, packed. */
static void gradient_of(const Network *net, const Plan *plan, const Run *run, big step) {
    float *work = run->work, *weights = run->weights;
    const big batch = plan->batch, n = plan->n, *places = run->places + step * batch;
    big first = 0;
    for (big row = 0; row < batch; row++)
        memcpy(work + plan->layer[0].units + row * plan->layer[0].in_pad,
               run->x + places[row] * plan->layer[0].in_pad,
               sizeof(float) * plan->layer[0].in_pad);
    for (big l = 0; l < n; l++) {
        const Layer *own = &plan->layer[l];
        float *h = work + own->units, *slopes = work + own->slopes;
        if (l) units_of(net, own, batch, slopes, h);
        disturb(plan, run, l, step, first, h, l ? slopes : 0);
        first += batch * own->in;
        sums(own, weights, batch, h, work + (l + 1 < n ? own[1].slopes : plan->sums),
             work + plan->room);
    }
    const Layer *last = &plan->layer[n - 1];
    float *back = work + plan->back, *other = back + (plan->gradient - plan->back) / 2;
    memset(back, 0, sizeof(float) * batch * last->out_pad);
    for (big row = 0; row < batch; row++)
        slope_of_loss(net, last->out, work + plan->sums + row * last->out_pad,
                      run->y + places[row] * net->n_targets,
                      run->share[step * batch + row], back + row * last->out_pad);
    for (big l = n - 1; l >= 0; l--) {
        const Layer *own = &plan->layer[l];
        const float *h = work + own->units, *weight = weights + own->weight;
        float *into = work + plan->gradient + own->weight;
        float *biases = work + plan->gradient + own->bias;
        if (own->narrow)
            product(own->out, own->in_pad, batch, back, 1, own->out_pad, h, own->in_pad,
                    0, into, own->in_pad, work + plan->room);
        else
            product(own->in, own->out_pad, batch, h, 1, own->in_pad, back, own->out_pad,
                    0, into, own->out_pad, work + plan->room);
        for (big o = 0; o < own->out_pad; o += LANES) {
            vec sum = {0};
            for (big row = 0; row < batch; row++)
                sum += load(back + row * own->out_pad + o);
            store(biases + o, sum);
        }
        if (!l) break;
        if (own->narrow)
            product(batch, own->in_pad, own->out, back, own->out_pad, 1, weight,
                    own->in_pad, 0, other, own->in_pad, work + plan->room);
        else
            product_turned(batch, own->in_pad, own->out, back, own->out_pad, weight,
                           own->in, own->out_pad, other, own->in_pad,
                           work + plan->room);
        const float *restrict slopes = work + own->slopes;
        for (big i = 0; i < batch * own->in_pad; i++) other[i] *= slopes[i];
        float *swap = back;
        back = other;
        other = swap;
    }
}

static void adam(big n, const float *restrict gradient, const float *restrict decay,
                 float *restrict weights, float *restrict mean, float *restrict square,
                 float rate, float epsilon) {
    for (big i = 0; i < n; i++) {
        const float g = gradient[i] + weights[i] * decay[i];
        const float m = mean[i] + 0.1f * (g - mean[i]);
        const float s = square[i] * 0.999f + 0.001f * g * g;
        mean[i] = m;
        square[i] = s;
        weights[i] -= m / (sqrtf(s) + epsilon) * rate;
    }
}

/* Mean loss of rows without noise. */
static double held_loss(const Network *net, const Plan *plan, const float *weights,
                        float *work, const float *x, const float *y, big rows) {
    const Layer *first = &plan->layer[0], *last = &plan->layer[plan->n - 1];
    double loss = 0.0;
    for (big start = 0; start < rows; start += plan->batch) {
        const big count = rows - start < plan->batch ? rows - start : plan->batch;
        const float *h = x + start * first->in_pad;
        for (big l = 0; l < plan->n; l++) {
            const Layer *own = &plan->layer[l];
            if (l) {
                units_of(net, own, count, work + own->slopes, work + own->units);
                h = work + own->units;
            }
            sums(own, weights, count, h,
                 work + (l + 1 < plan->n ? own[1].slopes : plan->sums),
                 work + plan->room);
        }
        for (big row = 0; row < count; row++)
            loss += loss_of(net, last->out, work + plan->sums + row * last->out_pad,
                            y + (start + row) * net->n_targets);
    }
    return loss / (double)rows;
}

/* Compare with the best so far; whether the network is given up. */
static int look(const Network *net, const Plan *plan, Run *run) {
    const float loss = (float)held_loss(net, plan, run->weights, run->work, run->held_x,
                                        run->held_y, run->n_held);
    if (!run->looks++) memcpy(run->best, run->weights, sizeof(float) * plan->packed);
    if (loss < run->least) {
        run->least = loss;
        run->when = run->step;
        run->misses = 0;
        memcpy(run->best, run->weights, sizeof(float) * plan->packed);
    } else {
        run->misses++;
    }
    return run->misses >= run->patience;
}

/* What Python calls */

int64_t caveat_version(void) { return VERSION; }
int64_t caveat_lanes(void) { return LANES; }
int64_t caveat_most_layers(void) { return MOST_LAYERS; }

/* Numbers of packed parameters, and of the work space. */
void caveat_sizes(const Network *net, int64_t *packed, int64_t *work) {
    Plan plan;
    plan_of(net, &plan);
    *packed = plan.packed;
    *work = plan.size;
}

/* Between parameters one after the other, W1, b1, W2, b2, …, and packed ones. */
void caveat_pack(const Network *net, float *flat, float *packed, int64_t is_back) {
    Plan plan;
    plan_of(net, &plan);
    if (!is_back) memset(packed, 0, sizeof(float) * plan.packed);
    for (big l = 0; l < plan.n; l++) {
        const Layer *own = &plan.layer[l];
        for (big i = 0; i <= own->in; i++)
            for (big o = 0; o < own->out; o++) {
                const big place = i == own->in   ? own->bias + o
                                  : own->narrow ? own->weight + o * own->in_pad + i
                                                : own->weight + i * own->out_pad + o;
                if (is_back) *flat++ = packed[place];
                else packed[place] = *flat++;
            }
    }
}

/* Some steps of training; how many were done, which is fewer if it was given up. */
int64_t caveat_train(const Network *net, Run *run) {
    Plan plan;
    plan_of(net, &plan);
    const big words = (plan.batch * plan.fan_in + 3) / 4;
    for (big step = 0; step < run->n_steps; step++) {
        if (run->noise == MASKS)
            make_bits(run->state, words, (uint64_t *)(run->work + plan.bits));
        gradient_of(net, &plan, run, step);
        adam(plan.packed, run->work + plan.gradient, run->decay, run->weights, run->mean,
             run->square, run->rates[step], run->epsilons[step]);
        run->step++;
        const int is_due =
            run->every && (run->step % run->every == 0 || run->step == run->total);
        if (is_due && look(net, &plan, run)) return step + 1;
    }
    return run->n_steps;
}

double caveat_loss(const Network *net, const float *packed, float *work, const float *x,
                   const float *y, int64_t rows) {
    Plan plan;
    plan_of(net, &plan);
    return held_loss(net, &plan, packed, work, x, y, rows);
}

/* For tests: h = f(z), and z becomes f'(z). */
void caveat_activate(int64_t kind, float leak, int64_t n, float *z, float *h) {
    activate(kind, leak, n, z, h);
}
