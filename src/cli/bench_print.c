/* bench_print.c - the numbers of `cohort bench`, for people and for scripts. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/bench.h"
#include "common/json.h"
#include "worker/nn/machine.h"

enum { NAME_MAX_LENGTH = 128 };

static bool is_conv(const coh_bench *self, const coh_step_part *part)
{
    const coh_layer_kind kind = self->model->layers[part->layer].spec.kind;

    return kind == COH_LAYER_CONV2D || kind == COH_LAYER_DECONV2D;
}

static double step_gflops(const coh_bench *self)
{
    return 1e-9 * (double)self->model->flop_step * (double)self->batch /
           self->step_s;
}

/* What is not convolution, and the update, against step + update. */
static double other_share(const coh_bench *self)
{
    double conv_s = 0, all_s = self->update_s;

    for (int i = 0; i < self->nparts; i++) {
        all_s += self->parts[i].seconds;
        conv_s += is_conv(self, &self->parts[i]) ? self->parts[i].seconds : 0;
    }
    return 1 - conv_s / all_s;
}

static double gflops(const coh_bench *self, const coh_step_part *part)
{
    return 1e-9 * coh_bench_flop(self, part) / part->seconds;
}

/* --- for people --------------------------------------------------------- */

static void print_head(const coh_bench *self)
{
    char machine[NAME_MAX_LENGTH], library[32];

    coh_machine_name(machine, sizeof machine);
    coh_dnn_version(library, sizeof library);
    printf("%s, %d thread%s, oneDNN %s\n", machine, self->threads,
           self->threads == 1 ? "" : "s", library);
    printf("FMA peak    %.0f GFLOP/s (%s loop %.0f, matrix product %.0f)\n",
           coh_peak_gflops(&self->peak), coh_peak_instructions(),
           self->peak.probe_gflops, self->peak.matmul_gflops);
    printf("memcpy      %.1f GB/s, one thread\n\n", self->memcpy_gb_s);
}

static void print_part(const coh_bench *self, const coh_step_part *part)
{
    const double peak = coh_peak_gflops(&self->peak);
    const double saving = part->saving;

    printf("  %-20s %-16s %9.3f", self->model->layers[part->layer].spec.name,
           coh_pass_name(part->pass), 1e3 * part->seconds);
    if (coh_bench_flop(self, part) > 0)
        printf(" %8.1f %6.2f", gflops(self, part), gflops(self, part) / peak);
    else
        printf(" %8s %6s", "", "");
    if (saving > 1)
        printf(" %8.1f", gflops(self, part) / saving);
    else
        printf(" %8s", "");
    printf("  %s %s", part->algorithm, part->layout);
    if (part->copy_s > 0)
        printf(" (reorders %.3f ms)", 1e3 * part->copy_s);
    printf("\n");
}

void coh_bench_print(const coh_bench *self)
{
    const double peak = coh_peak_gflops(&self->peak);

    print_head(self);
    printf("  %-20s %-16s %9s %8s %6s %8s  %s\n", "layer", "pass", "ms",
           "GFLOP/s", "share", "real", "algorithm and layout");
    for (int i = 0; i < self->nparts; i++)
        print_part(self, &self->parts[i]);
    printf("\nstep        %.3f ms (best of %d, median %.3f) for %" PRId64
           " samples: %.1f GFLOP/s, %.3f x the FMA peak\n",
           1e3 * self->step_s, self->steps, 1e3 * self->step_median_s,
           self->batch, step_gflops(self), step_gflops(self) / peak);
    printf("update      %.3f ms; with all that is not convolution %.1f %% of "
           "step + update\n",
           1e3 * self->update_s, 100 * other_share(self));
    printf("choice      %.3f s to choose the algorithms, before all this\n",
           self->choose_s);
    printf("input       %.3f ms to make the samples of a step, beside it\n",
           1e3 * self->input_s);
}

/* --- for scripts -------------------------------------------------------- */

static void write_part(coh_json *json, const coh_bench *self,
                       const coh_step_part *part)
{
    coh_json_open(json, NULL, '{');
    coh_json_text(json, "name", self->model->layers[part->layer].spec.name);
    coh_json_text(json, "pass", coh_pass_name(part->pass));
    coh_json_real(json, "ms", 1e3 * part->seconds);
    coh_json_real(json, "gflops", gflops(self, part));
    coh_json_real(json, "share",
                  gflops(self, part) / coh_peak_gflops(&self->peak));
    coh_json_real(json, "real_gflops", gflops(self, part) / part->saving);
    coh_json_real(json, "reorder_ms", 1e3 * part->copy_s);
    coh_json_text(json, "algorithm", part->algorithm);
    coh_json_text(json, "layout", part->layout);
    coh_json_close(json, '{');
}

void coh_bench_print_json(const coh_bench *self)
{
    const double peak = coh_peak_gflops(&self->peak);
    char machine[NAME_MAX_LENGTH], library[32];
    coh_json json;

    coh_machine_name(machine, sizeof machine);
    coh_dnn_version(library, sizeof library);
    coh_json_init(&json, stdout, false);
    coh_json_open(&json, NULL, '{');
    coh_json_text(&json, "processor", machine);
    coh_json_text(&json, "onednn", library);
    coh_json_int(&json, "threads", self->threads);
    coh_json_int(&json, "batch", self->batch);
    coh_json_real(&json, "fma_peak_gflops", peak);
    coh_json_real(&json, "fma_loop_gflops", self->peak.probe_gflops);
    coh_json_text(&json, "fma_loop", coh_peak_instructions());
    coh_json_real(&json, "matmul_gflops", self->peak.matmul_gflops);
    coh_json_real(&json, "memcpy_gb_s", self->memcpy_gb_s);
    coh_json_int(&json, "steps", self->steps);
    coh_json_real(&json, "step_ms", 1e3 * self->step_s);
    coh_json_real(&json, "step_median_ms", 1e3 * self->step_median_s);
    coh_json_real(&json, "step_gflops", step_gflops(self));
    coh_json_real(&json, "step_share", step_gflops(self) / peak);
    coh_json_real(&json, "update_ms", 1e3 * self->update_s);
    coh_json_real(&json, "choose_s", self->choose_s);
    coh_json_real(&json, "input_ms", 1e3 * self->input_s);
    coh_json_real(&json, "other_share", other_share(self));
    coh_json_open(&json, "layers", '[');
    for (int i = 0; i < self->nparts; i++)
        write_part(&json, self, &self->parts[i]);
    coh_json_close(&json, '[');
    coh_json_close(&json, '{');
}
