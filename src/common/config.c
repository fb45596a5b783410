/* config.c - see config.h. The life of a configuration, and the walk through
 * file and --set; config_value.c reads one value, config_check.c looks at all.
 */
#include "common/config_option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 160, FAULTS_MAX = 60 };

/* --- Faults ------------------------------------------------------------- */

bool coh_reader_is_full(const coh_reader *self)
{
    return self->faults >= FAULTS_MAX;
}

/* "hep.yaml:12:3: optimizer.rat: ", "--set train.batch=0: " */
static void make_place(const coh_reader *self, coh_yaml_place at,
                       const char *key, char *out, size_t size)
{
    if (self->set != NULL) {
        const size_t n = strlen(key);
        const bool is_said = strncmp(self->set, key, n) == 0 &&
                             (self->set[n] == '=' || self->set[n] == '\0');
        snprintf(out, size, "--set %s: %s%s", coh_utf8_clip(self->set).text,
                 is_said ? "" : key, is_said ? "" : ": ");
        return;
    }
    char line[16] = "", column[16] = "";
    if (at.line > 0)
        snprintf(line, sizeof line, ":%d", at.line);
    if (at.column > 0)
        snprintf(column, sizeof column, ":%d", at.column);
    snprintf(out, size, "%.250s%s%s: %s%s", self->path, line, column, key,
             *key != '\0' ? ": " : "");
}

void coh_reader_fault(coh_reader *self, coh_yaml_place at, const char *key,
                      const char *fmt, ...)
{
    char place[512], what[640];

    if (coh_reader_is_full(self))
        return;
    self->faults++;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    make_place(self, at, key, place, sizeof place);
    coh_err_add(self->err, COH_E_CONFIG, "%s%s", place, what);
}

/* --- Life --------------------------------------------------------------- */

void coh_config_destroy(coh_config **self)
{
    coh_config *config = *self;
    if (config == NULL)
        return;

    for (int i = 0; i < COH_OPTION_COUNT; i++)
        coh_option_clear(&coh_options[i], config);
    free(config->path);
    free(config);
    *self = NULL;
}

/* All defaults, or NULL. */
static coh_config *new_config(const char *path)
{
    coh_config *config = calloc(1, sizeof *config);
    bool ok = config != NULL && (config->path = strdup(path)) != NULL;

    for (int i = 0; ok && i < COH_OPTION_COUNT; i++)
        ok = coh_option_reset(&coh_options[i], config);
    if (!ok)
        coh_config_destroy(&config);
    return config;
}

/* "runs/hep.yaml" gives "hep". */
static bool name_run(coh_config *config)
{
    if (config->run.name[0] != '\0')
        return true;

    const char *slash = strrchr(config->path, '/');
    const char *file = slash == NULL ? config->path : slash + 1;
    const char *dot = strrchr(file, '.');
    const size_t length =
        dot == NULL || dot == file ? strlen(file) : (size_t)(dot - file);
    char *name = strndup(file, length);
    if (name == NULL)
        return false;
    free(config->run.name);
    config->run.name = name;
    return true;
}

/* --- The walk ----------------------------------------------------------- */

static void read_key(coh_reader *self, const char *key,
                     const coh_yaml_node *node);

static void refuse_dots(coh_reader *self, const coh_yaml_node *node)
{
    const char *key = node->key, *word = coh_option_word(key);
    coh_reader_fault(self, node->key_at, key,
                     "dotted keys are for --set; write '%.*s:' and, indented "
                     "below it, '%s:'",
                     (int)(word - key - 1), key, word);
}

/* `room` is "" for the whole file. */
static void read_mapping(coh_reader *self, const char *room,
                         const coh_yaml_node *node)
{
    for (int i = 0; i < node->count && !coh_reader_is_full(self); i++) {
        const coh_yaml_node *item = node->items[i];
        const coh_clip word = coh_utf8_clip(item->key);
        char key[KEY_MAX];

        snprintf(key, sizeof key, "%s%s%s", room, *room != '\0' ? "." : "",
                 word.text);
        if (coh_option_word(word.text) != word.text &&
            coh_option_find(word.text) != NULL)
            refuse_dots(self, item);
        else
            read_key(self, key, item);
    }
}

/* A room without anything in it gives the defaults of all its keys. */
static void reset_room(coh_reader *self, const char *room)
{
    const size_t length = strlen(room);

    for (int i = 0; i < COH_OPTION_COUNT; i++)
        if (strncmp(coh_options[i].key, room, length) == 0 &&
            coh_options[i].key[length] == '.' &&
            !coh_option_reset(&coh_options[i], self->config))
            self->no_memory = true;
}

static void read_room(coh_reader *self, const coh_option *room,
                      const coh_yaml_node *node)
{
    if (coh_is_null(node)) {
        reset_room(self, room->key);
    } else if (node->kind == COH_YAML_MAPPING) {
        read_mapping(self, room->key, node);
    } else {
        char advice[COH_ADVICE_MAX], probe[KEY_MAX];
        snprintf(probe, sizeof probe, "%s.?", room->key);
        coh_option_advise(probe, advice);
        coh_reader_fault(self, node->at, room->key,
                         "a %s stands where lines of key: value are wanted; %s",
                         node->kind == COH_YAML_LIST ? "list" : "value",
                         advice);
    }
}

static void read_key(coh_reader *self, const char *key,
                     const coh_yaml_node *node)
{
    const coh_option *row = coh_option_find(key);

    if (row == NULL) {
        char advice[COH_ADVICE_MAX];
        coh_option_advise(key, advice);
        coh_reader_fault(self, node->key_at, key, "unknown key; %s", advice);
    } else if (row->type == COH_OPTION_ROOM) {
        read_room(self, row, node);
    } else {
        const bool ok = coh_option_read(self, row, node, key, self->config);
        self->marks[row - coh_options] =
            (coh_mark){ ok ? COH_MARK_SET : COH_MARK_FAULTY, self->set,
                        node->at };
    }
}

/* False if the file holds no keys: nothing more is then known. */
static bool read_file(coh_reader *self, const char *text, size_t length)
{
    coh_yaml_node *root = NULL;
    const coh_status status =
        coh_yaml_parse(self->path, text, length, &root, self->err);

    self->no_memory |= status == COH_E_NOMEM;
    self->faults += status != COH_OK;
    const bool has_keys = root != NULL && root->kind == COH_YAML_MAPPING;
    if (has_keys)
        read_mapping(self, "", root);
    else if (root != NULL)
        coh_reader_fault(self, root->at, "",
                         "a %s stands where lines of "
                         "key: value are wanted",
                         root->kind == COH_YAML_LIST ? "list" : "value");
    coh_yaml_destroy(&root);
    return has_keys;
}

/* --- Sets --------------------------------------------------------------- */

/* Read a value that begins as a list, a mapping or a quoted text does. */
static void read_set_yaml(coh_reader *self, const char *key, const char *value)
{
    coh_err inner = COH_ERR_INIT;
    coh_yaml_node *node = NULL;
    const coh_status status =
        coh_yaml_parse(NULL, value, strlen(value), &node, &inner);

    if (status != COH_OK) {
        inner.text[strcspn(inner.text, "\n")] = '\0';
        coh_reader_fault(self, (coh_yaml_place){ 0, 0 }, key, "%s", inner.text);
    } else {
        read_key(self, key, node);
    }
    self->no_memory |= status == COH_E_NOMEM;
    coh_yaml_destroy(&node);
}

/* Any other value is taken as it stands, so that *.h5 and a: b need no
 * quotes, which the shell would take away. */
static void read_set_plain(coh_reader *self, const char *key, char *value)
{
    const size_t length = strlen(value);
    if (coh_yaml_text_length(value, length) < length)
        coh_reader_fault(self, (coh_yaml_place){ 0, 0 }, key,
                         "the value is no text in UTF-8");
    else
        read_key(self, key,
                 &(coh_yaml_node){
                     .kind = COH_YAML_SCALAR, .plain = true, .text = value });
}

/* Cut blanks at the end, return the text after those in front. */
static char *trim(char *text)
{
    char *end = text + strlen(text);
    while (end > text && strchr(" \t\r\n", end[-1]) != NULL)
        *--end = '\0';
    return text + strspn(text, " \t\r\n");
}

static void read_set(coh_reader *self, const char *set)
{
    char *copy = strdup(set);
    if (copy == NULL) {
        self->no_memory = true;
        return;
    }
    char *equals = strchr(copy, '=');
    self->set = set;
    if (equals == NULL || equals == copy) {
        coh_reader_fault(self, (coh_yaml_place){ 0, 0 }, set,
                         "is not key=value, e.g. --set train.batch=64");
    } else {
        *equals = '\0';
        const char *key = trim(copy);
        char *value = trim(equals + 1);
        if (*value != '\0' && strchr("[{\"'", *value) != NULL)
            read_set_yaml(self, key, value);
        else
            read_set_plain(self, key, value);
    }
    self->set = NULL;
    free(copy);
}

/* --- Loading ------------------------------------------------------------ */

coh_status coh_config_parse(const char *name, const char *text, size_t length,
                            const char *const *sets, int nsets,
                            coh_config **out, coh_err *err)
{
    coh_reader self = { .path = name, .err = err };

    self.config = new_config(name);
    self.no_memory = self.config == NULL;
    bool has_keys = false;
    if (!self.no_memory)
        has_keys = read_file(&self, text, length);
    for (int i = 0; i < nsets && !self.no_memory; i++)
        read_set(&self, sets[i]);
    if (!self.no_memory)
        self.no_memory = !name_run(self.config);
    if (!self.no_memory && has_keys)
        coh_config_check(&self);

    if (!self.no_memory && self.faults == 0) {
        *out = self.config;
        return COH_OK;
    }
    coh_config_destroy(&self.config);
    if (self.no_memory)
        return coh_fail(err, COH_E_NOMEM, "no memory to read %s", name);
    return COH_E_CONFIG;
}

/* All bytes of a file, up to one more than a configuration may have. */
static coh_status read_bytes(const char *path, char **out, size_t *length,
                             coh_err *err)
{
    const size_t most = COH_YAML_BYTES_MAX + 4; /* with a byte order mark */
    char *text = malloc(most);
    if (text == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory to read %s", path);

    FILE *file = fopen(path, "rb");
    size_t got = 0;
    if (file != NULL)
        got = fread(text, 1, most, file);
    if (file == NULL || ferror(file)) {
        coh_fail(err, COH_E_CONFIG, "cannot read the configuration %s: %s",
                 path, strerror(errno));
        if (file != NULL)
            (void)fclose(file);
        free(text);
        return COH_E_CONFIG;
    }
    (void)fclose(file); /* read-only: nothing to lose */
    *out = text;
    *length = got;
    return COH_OK;
}

coh_status coh_config_load(const char *path, const char *const *sets, int nsets,
                           coh_config **out, coh_err *err)
{
    char *text = NULL;
    size_t length = 0;

    coh_status status = read_bytes(path, &text, &length, err);
    if (status == COH_OK)
        status = coh_config_parse(path, text, length, sets, nsets, out, err);
    free(text);
    return status;
}
