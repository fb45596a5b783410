/* profile.c - see profile.h. */
#include "worker/nn/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "worker/nn/graph.h"

const char *coh_pass_name(coh_pass pass)
{
    static const char *const names[] = {
        [COH_PASS_INFER] = "inference",
        [COH_PASS_TRAIN] = "forward",
        [COH_PASS_DATA] = "backward_data",
        [COH_PASS_WEIGHTS] = "backward_weights",
    };
    return names[pass];
}

static const coh_layout *layout_of(const coh_op *op, coh_arg arg,
                                   coh_arg gradient)
{
    const coh_layout *layout = coh_op_layout(op, arg);
    return layout != NULL ? layout : coh_op_layout(op, gradient);
}

static void describe(const coh_action *action, coh_step_part *part)
{
    char src[16] = "", dst[16] = "";

    part->algorithm = action->algorithm;
    part->saving = action->saving;
    if (action->op == NULL)
        return;
    part->algorithm = coh_op_algorithm(action->op);
    const coh_layout *from =
        layout_of(action->op, COH_ARG_SRC, COH_ARG_DIFF_SRC);
    const coh_layout *to = layout_of(action->op, COH_ARG_DST, COH_ARG_DIFF_DST);
    if (from != NULL)
        coh_layout_write(from, src, sizeof src);
    if (to != NULL)
        coh_layout_write(to, dst, sizeof dst);
    if (to == NULL || strcmp(src, dst) == 0)
        snprintf(part->layout, sizeof part->layout, "%s", src);
    else
        snprintf(part->layout, sizeof part->layout, "%s>%s", src, dst);
}

static bool is_next(const coh_action *one, const coh_action *other)
{
    return one->layer != other->layer || one->pass != other->pass;
}

static int list(const coh_tape *tape, coh_step_part *parts)
{
    int count = 0;

    for (int i = 0; i < tape->count; i++) {
        const coh_action *action = &tape->actions[i];
        if (i == 0 || is_next(action, action - 1)) {
            if (parts != NULL)
                parts[count] = (coh_step_part){ .layer = action->layer,
                                                .pass = action->pass,
                                                .seconds = INFINITY,
                                                .saving = 1,
                                                .algorithm = "reorder" };
            count++;
        }
        if (parts != NULL && !action->is_copy)
            describe(action, &parts[count - 1]);
    }
    return count;
}

int coh_profile_parts(const coh_graph *graph, coh_step_part *parts)
{
    const int forward = list(&graph->forward, parts);
    return forward +
           list(&graph->backward, parts != NULL ? parts + forward : NULL);
}

static void take(coh_step_part *part, double seconds, double copy_s)
{
    if (seconds >= part->seconds)
        return;
    part->seconds = seconds;
    part->copy_s = copy_s;
}

/* Returns behind the last part of this tape. */
static coh_step_part *run_tape(const coh_tape *tape, const coh_run *run,
                               coh_step_part *parts)
{
    double before = coh_clock_now_s(), seconds = 0, copy_s = 0;

    for (int i = 0; i < tape->count; i++) {
        const coh_action *action = &tape->actions[i];
        action->run(action->self, run);
        const double now = coh_clock_now_s();
        seconds += now - before;
        copy_s += action->is_copy ? now - before : 0;
        before = now;
        if (i + 1 < tape->count && !is_next(action, action + 1))
            continue;
        take(parts++, seconds, copy_s);
        seconds = copy_s = 0;
    }
    return parts;
}

double coh_profile_run(const coh_graph *graph, const coh_run *run,
                       coh_step_part *parts)
{
    const double start = coh_clock_now_s();

    parts = run_tape(&graph->forward, run, parts);
    (void)run_tape(&graph->backward, run, parts);
    return coh_clock_now_s() - start;
}
