/* hdf5_array.c - see hdf5_array.h. */
#include "worker/hdf5_array.h"

#include <ctype.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "worker/lzf.h"

enum {
    LISTED_MAX = 20,    /* datasets named in a message */
    VISITED_MAX = 1000, /* links looked at for it */
    NESTING_MAX = 8,    /* virtual datasets of virtual datasets */
    WHY_SIZE = 256,
    LZF_FILTER = 32000 /* registered with the HDF Group by h5py */
};

static herr_t keep_first(unsigned n, const H5E_error2_t *entry, void *text)
{
    char *why = text;

    (void)n;
    if (why[0] == '\0' && entry->desc != NULL)
        snprintf(why, WHY_SIZE, "%s", entry->desc);
    return 0;
}

coh_status coh_hdf5_fail(coh_err *err, const char *file, const char *what)
{
    char why[WHY_SIZE] = "";

    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, why);
    const bool is_newer = strstr(why, "version number") != NULL;
    return coh_fail(err, COH_E_DATA, "%s: %s (HDF5: %s)%s", file, what,
                    why[0] != '\0' ? why : "no reason given",
                    is_newer ? ": written by a newer HDF5 than this; write it "
                               "with an older file format (h5py: libver='v110')"
                             : "");
}

/* --- Names ----------------------------------------------------------------- */

typedef struct listing {
    int visited, found;
    bool has_events;
    char text[1024];
} listing;

static bool is_event(const char *name)
{
    return strncmp(name, "event_", 6) == 0 && isdigit((unsigned char)name[6]);
}

static herr_t list_link(hid_t group, const char *name, const H5L_info_t *info,
                        void *data)
{
    listing *list = data;
    const size_t used = strlen(list->text);

    (void)info;
    if (++list->visited >= VISITED_MAX)
        return 1;
    if (is_event(name)) {
        list->has_events = true;
        return list->found > 0; /* enough is known */
    }
    const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object >= 0 && H5Iget_type(object) == H5I_DATASET &&
        list->found++ < LISTED_MAX)
        snprintf(list->text + used, sizeof list->text - used, "%s%s",
                 used > 0 ? ", " : "", name);
    if (object >= 0)
        (void)H5Oclose(object);
    return 0;
}

static coh_status fail_missing(hid_t file, const char *path, const char *key,
                               const char *name, coh_err *err)
{
    listing list = { 0 };

    (void)H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, list_link, &list);
    return coh_fail(
        err, COH_E_DATA, "%s: no dataset '%s' (%s); the file has: %s%s%s", path,
        name, key, list.found > 0 ? list.text : "no dataset",
        list.found > LISTED_MAX ? ", ..." : "",
        list.has_events ? "; it keeps one group event_N an event: merge such "
                          "files into arrays of all events first"
                        : "");
}

/* Every group on the way must exist before HDF5 can be asked about the next. */
static bool has_link(hid_t file, const char *name)
{
    char path[1024];

    if (snprintf(path, sizeof path, "%s", name) >= (int)sizeof path)
        return false;
    for (char *slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (H5Lexists(file, path, H5P_DEFAULT) <= 0)
            return false;
        *slash = '/';
    }
    return path[0] != '\0' && H5Lexists(file, path, H5P_DEFAULT) > 0;
}

/* Open dataset `name`, which config key `key` asks for. */
static coh_status open_data(hid_t file, const char *path, const char *key,
                            const char *name, hid_t *out, coh_err *err)
{
    char what[512];

    if (!has_link(file, name))
        return fail_missing(file, path, key, name, err);
    const hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    if (data < 0) {
        snprintf(what, sizeof what, "cannot open dataset '%s' (%s)", name, key);
        return coh_hdf5_fail(err, path, what);
    }
    *out = data;
    return COH_OK;
}

/* --- Is the data there? HDF5 gives zeros for what is missing --------------- */

static coh_status check_source(hid_t data, const char *path, int depth,
                               coh_err *err);

/* out[PATH_MAX] = folder + more + "/" + name; "" if that is no path. */
static void join(const char *folder, const char *more, const char *name,
                 char *out)
{
    if (snprintf(out, PATH_MAX, "%s%s/%s", folder, more, name) >= PATH_MAX)
        out[0] = '\0';
}

/* out[PATH_MAX]: the folder that a file lies in. */
static const char *folder_of(const char *path, char *out)
{
    snprintf(out, PATH_MAX, "%s", path);
    return dirname(out);
}

/* Where HDF5 looks for an external file: as it is, or under the prefix. */
static void external_path(const char *path, const char *name, char *out)
{
    static const char origin[] = "${ORIGIN}";
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    char folder[PATH_MAX];

    if (name[0] == '/' || prefix == NULL || prefix[0] == '\0')
        snprintf(out, PATH_MAX, "%s", name);
    else if (strncmp(prefix, origin, strlen(origin)) == 0)
        join(folder_of(path, folder), prefix + strlen(origin), name, out);
    else
        join(prefix, "", name, out);
}

static coh_status check_external(hid_t data, hid_t plist, const char *path,
                                 coh_err *err)
{
    char name[PATH_MAX], place[PATH_MAX];
    const hid_t space = H5Dget_space(data), type = H5Dget_type(data);
    int64_t left = (int64_t)H5Sget_simple_extent_npoints(space) *
                   (int64_t)H5Tget_size(type);
    (void)H5Sclose(space);
    (void)H5Tclose(type);

    const int files = H5Pget_external_count(plist);
    for (int i = 0; i < files && left > 0; i++) {
        off_t offset = 0;
        hsize_t size = 0;
        struct stat info;
        memset(name, 0, sizeof name);
        if (H5Pget_external(plist, (unsigned)i, sizeof name - 1, name, &offset,
                            &size) < 0)
            return coh_hdf5_fail(err, path,
                                 "cannot read the external file list");
        external_path(path, name, place);
        const int64_t here = size == H5F_UNLIMITED || (int64_t)size > left
                                 ? left
                                 : (int64_t)size;
        if (stat(place, &info) != 0 || info.st_size < (int64_t)offset + here)
            return coh_fail(err, COH_E_DATA,
                            "%s: its data lies in the external file '%s', "
                            "which is missing or cut short (HDF5 would give "
                            "zeros): bring it, run where it lies, or set "
                            "HDF5_EXTFILE_PREFIX",
                            path, place);
        left -= here;
    }
    return COH_OK;
}

/* The selected box of a source must lie inside the source. */
static bool box_fits(hid_t data, hid_t selection)
{
    hsize_t low[H5S_MAX_RANK], high[H5S_MAX_RANK], dims[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(data);
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    bool fits = rank > 0 && H5Sget_simple_extent_ndims(selection) == rank &&
                H5Sget_select_bounds(selection, low, high) >= 0;

    for (int i = 0; fits && i < rank; i++)
        fits = high[i] < dims[i];
    (void)H5Sclose(space);
    return fits;
}

/* A source lies beside the file that names it, or where its name says.
 * found[PATH_MAX]. */
static hid_t open_source_file(const char *path, const char *name, char *found)
{
    char folder[PATH_MAX];
    hid_t file = H5I_INVALID_HID;

    if (strcmp(name, ".") == 0)
        snprintf(found, PATH_MAX, "%s", path);
    else if (name[0] == '/')
        snprintf(found, PATH_MAX, "%s", name);
    else
        join(folder_of(path, folder), "", name, found);
    file = H5Fopen(found, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0 && name[0] != '/') {
        snprintf(found, PATH_MAX, "%s", name);
        file = H5Fopen(found, H5F_ACC_RDONLY, H5P_DEFAULT);
    }
    return file;
}

/* Mapping `i` of a virtual dataset: is its source there, and whole? */
static coh_status check_mapping(hid_t plist, size_t i, const char *path,
                                int depth, int64_t *mapped, coh_err *err)
{
    char name[PATH_MAX] = "", set[1024] = "", found[PATH_MAX] = "";
    hid_t data = H5I_INVALID_HID;
    coh_status status = COH_OK;

    (void)H5Pget_virtual_filename(plist, i, name, sizeof name);
    (void)H5Pget_virtual_dsetname(plist, i, set, sizeof set);
    const hid_t here = H5Pget_virtual_vspace(plist, i);
    const hid_t there = H5Pget_virtual_srcspace(plist, i);
    const hid_t file = open_source_file(path, name, found);
    if (file >= 0 && has_link(file, set))
        data = H5Dopen2(file, set, H5P_DEFAULT);

    if (data < 0 ||
        (H5Sget_select_type(there) != H5S_SEL_ALL && !box_fits(data, there)))
        status = coh_fail(err, COH_E_DATA,
                          "%s: a virtual dataset whose source '%s' in '%s' is "
                          "missing or too small (HDF5 would give zeros): "
                          "bring it, or copy the dataset with h5repack where "
                          "it is whole",
                          path, set, name);
    else
        status = check_source(data, found, depth + 1, err);
    *mapped += (int64_t)H5Sget_select_npoints(here);
    if (data >= 0)
        (void)H5Dclose(data);
    if (file >= 0)
        (void)H5Fclose(file);
    (void)H5Sclose(here);
    (void)H5Sclose(there);
    return status;
}

static coh_status check_virtual(hid_t data, hid_t plist, const char *path,
                                int depth, coh_err *err)
{
    const hid_t space = H5Dget_space(data);
    const int64_t points = (int64_t)H5Sget_simple_extent_npoints(space);
    size_t count = 0;
    int64_t mapped = 0;
    coh_status status = COH_OK;

    (void)H5Sclose(space);
    (void)H5Pget_virtual_count(plist, &count);
    for (size_t i = 0; status == COH_OK && i < count; i++)
        status = check_mapping(plist, i, path, depth, &mapped, err);
    if (status == COH_OK && mapped < points)
        status = coh_fail(err, COH_E_DATA,
                          "%s: a virtual dataset whose sources fill only "
                          "%" PRId64 " of its %" PRId64 " values (HDF5 would "
                          "give zeros for the others)",
                          path, mapped, points);
    return status;
}

/* Chunks that were never written read as zeros, too: a converter was killed. */
static coh_status check_chunks(hid_t data, hid_t plist, const char *path,
                               coh_err *err)
{
    hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK], written = 0, want = 1;
    const hid_t space = H5Dget_space(data);
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    coh_status status = COH_OK;

    if (rank <= 0 || H5Pget_chunk(plist, rank, chunk) != rank ||
        H5Dget_num_chunks(data, space, &written) < 0)
        status = coh_hdf5_fail(err, path, "cannot read the chunk index");
    for (int i = 0; status == COH_OK && i < rank; i++)
        want *= (dims[i] + chunk[i] - 1) / chunk[i];
    if (status == COH_OK && written < want)
        status = coh_fail(err, COH_E_DATA,
                          "%s: only %" PRIu64 " of %" PRIu64
                          " chunks were ever written (HDF5 would give fill "
                          "values): write it again; if that is meant, "
                          "h5repack fills them",
                          path, (uint64_t)written, (uint64_t)want);
    (void)H5Sclose(space);
    return status;
}

/* h5py's lzf is not in the library: bring our own. */
static size_t lzf_filter(unsigned flags, size_t nvalues,
                         const unsigned values[], size_t size, size_t *room,
                         void **buffer)
{
    const size_t bytes = nvalues >= 3 ? values[2] : 0;

    if ((flags & H5Z_FLAG_REVERSE) == 0 || bytes == 0)
        return 0;
    unsigned char *out = H5allocate_memory(bytes, false);
    const size_t got =
        out != NULL ? coh_lzf_unpack(*buffer, size, out, bytes) : 0;
    if (got == 0) {
        (void)H5free_memory(out);
        return 0;
    }
    (void)H5free_memory(*buffer);
    *buffer = out;
    *room = bytes;
    return got;
}

static bool has_filter(H5Z_filter_t id)
{
    static const H5Z_class2_t lzf = { .version = H5Z_CLASS_T_VERS,
                                      .id = LZF_FILTER,
                                      .decoder_present = 1,
                                      .name = "lzf",
                                      .filter = lzf_filter };

    if (H5Zfilter_avail(id) > 0)
        return true;
    return id == LZF_FILTER && H5Zregister(&lzf) >= 0;
}

static coh_status check_filters(hid_t plist, const char *path, coh_err *err)
{
    const int filters = H5Pget_nfilters(plist);

    for (int i = 0; i < filters; i++) {
        char name[64] = "";
        unsigned flags = 0, config = 0;
        size_t nvalues = 0;
        const H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &nvalues, NULL,
                           sizeof name, name, &config);
        if (!has_filter(id))
            return coh_fail(err, COH_E_DATA,
                            "%s: is packed with filter %d (%s), which this "
                            "HDF5 lacks: repack it where it can be read "
                            "(h5repack -f GZIP=4), or set HDF5_PLUGIN_PATH",
                            path, (int)id, name);
    }
    return COH_OK;
}

static coh_status check_source(hid_t data, const char *path, int depth,
                               coh_err *err)
{
    const hid_t space = H5Dget_space(data);
    const int64_t points = (int64_t)H5Sget_simple_extent_npoints(space);
    const hid_t plist = H5Dget_create_plist(data);
    H5D_space_status_t is_written = H5D_SPACE_STATUS_ERROR;
    coh_status status = check_filters(plist, path, err);

    (void)H5Sclose(space);
    if (status != COH_OK || points <= 0)
        ;
    else if (depth > NESTING_MAX)
        status = coh_fail(err, COH_E_DATA,
                          "%s: virtual datasets nested too deep", path);
    else if (H5Pget_layout(plist) == H5D_CHUNKED)
        status = check_chunks(data, plist, path, err);
    else if (H5Pget_layout(plist) == H5D_VIRTUAL)
        status = check_virtual(data, plist, path, depth, err);
    else if (H5Pget_external_count(plist) > 0)
        status = check_external(data, plist, path, err);
    else if (H5Dget_space_status(data, &is_written) < 0 ||
             is_written == H5D_SPACE_STATUS_NOT_ALLOCATED)
        status = coh_fail(err, COH_E_DATA,
                          "%s: was never written (HDF5 would give zeros): "
                          "write it again",
                          path);
    (void)H5Pclose(plist);
    return status;
}

/* An array of numbers that is wholly there: its shape. */
static coh_status check_array(hid_t data, const char *path, coh_layout *out,
                              coh_err *err)
{
    hsize_t dims[H5S_MAX_RANK] = { 0 };
    const hid_t type = H5Dget_type(data), space = H5Dget_space(data);
    const H5T_class_t class = H5Tget_class(type);
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);

    (void)H5Tclose(type);
    (void)H5Sclose(space);
    if (class != H5T_INTEGER && class != H5T_FLOAT)
        return coh_fail(err, COH_E_DATA,
                        "%s: its elements are neither integers nor floats",
                        path);
    if (rank < 1 || rank > COH_AXES_MAX)
        return coh_fail(err, COH_E_DATA, "%s: has %d axes, 1 to %d can be used",
                        path, rank, COH_AXES_MAX);
    out->rank = rank;
    for (int i = 0; i < rank; i++)
        out->dims[i] = (int64_t)dims[i];
    return check_source(data, path, 0, err);
}

coh_status coh_hdf5_open_array(hid_t file, const char *path, const char *key,
                               const char *name, hid_t *out, coh_layout *layout,
                               coh_err *err)
{
    hid_t data = H5I_INVALID_HID;
    coh_status status = open_data(file, path, key, name, &data, err);
    if (status != COH_OK)
        return status;

    char place[PATH_MAX] = "";
    (void)H5Fget_name(data, place, sizeof place);
    status = check_array(data, place, layout, err);
    if (status != COH_OK) {
        coh_err_context(err, "dataset '%s' (%s)", name, key);
        (void)H5Dclose(data);
        return status;
    }
    *out = data;
    return COH_OK;
}
