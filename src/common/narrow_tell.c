/* narrow_tell.c - see narrow_tell.h. */
#include "common/narrow_tell.h"

#include <inttypes.h>

/* What is less than 2^-40 of the largest beside it changes nothing by itself,
 * and some of that is in many gradients. */
static const double zeroed_share = 1e-3;

static void write_one(coh_json *json, const char *key, int kind,
                      const coh_narrowed *counts)
{
    if (kind == COH_WIRE_FLOAT32)
        return;
    coh_json_open(json, key, '{');
    coh_json_text(json, "format", coh_narrow_name((coh_wire_kind)kind));
    coh_json_int(json, "values", counts->values);
    coh_json_int(json, "infinite", counts->infinite);
    coh_json_int(json, "zeroed", counts->zeroed);
    coh_json_close(json, '{');
}

void coh_narrow_write(const coh_config *config, const coh_narrow_sums *sums,
                      coh_json *json)
{
    if (config->servers == 0 || (config->exchange.push == COH_WIRE_FLOAT32 &&
                                 config->exchange.reply == COH_WIRE_FLOAT32))
        return;
    coh_json_open(json, "narrowed", '{');
    write_one(json, "push", config->exchange.push, &sums->pushed);
    write_one(json, "reply", config->exchange.reply, &sums->answered);
    coh_json_close(json, '{');
}

static bool is_bad(const coh_narrowed *counts)
{
    return counts->infinite > 0 ||
           (double)counts->zeroed > zeroed_share * (double)counts->values;
}

bool coh_narrow_warn(const coh_config *config, const coh_narrow_sums *sums,
                     char out[COH_NARROW_TEXT])
{
    const bool is_push = is_bad(&sums->pushed);
    const coh_narrowed *counts = is_push ? &sums->pushed : &sums->answered;
    const int kind = is_push ? config->exchange.push : config->exchange.reply;

    if (!is_bad(counts))
        return false;
    snprintf(out, COH_NARROW_TEXT,
             "of %" PRId64 " values %s as %s, %" PRId64
             " became infinite and %" PRId64 " became 0; write exchange: {%s: "
             "float32}%s",
             counts->values, is_push ? "pushed" : "answered",
             coh_narrow_name((coh_wire_kind)kind), counts->infinite,
             counts->zeroed, is_push ? "push" : "reply",
             kind == COH_WIRE_FLOAT16 ? ", or bfloat16" : "");
    return true;
}
