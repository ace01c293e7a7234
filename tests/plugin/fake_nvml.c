/*
 * A libnvidia-ml.so.1 for tests, so that the real Python bindings are exercised.
 *
 * FAKE_NVML says what the node is like: healthy, uninitialized, empty, lost, mig, unknown, broken.
 * FAKE_NVML_CALLS names a file that gets a line for each start, shutdown, look at all GPUs and wait for events.
 * FAKE_NVML_SCRIPT names a file that says what happens; see fake_nvml_script.h.
 * With -DOLD the functions that older drivers lack are missing. A handle is good until NVML is shut down.
 */
#include "fake_nvml_script.h"

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, RESET_REQUIRED = 16, ARGUMENT_VERSION_MISMATCH = 25,
    BEYOND_THE_LIST = 777, UNKNOWN = 999
};
enum { MOST_GPUS = 16, MOST_INSTANCES = 8, SLICES = 7, GENERATIONS = 64, XID = 8, EVERY_EVENT = 0xc10f };

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } memory_v2_t;
typedef struct {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_t;
typedef struct {
    unsigned int field, scope;
    long long timestamp, latency;
    unsigned int type, result;
    union { double d; unsigned int ui; unsigned long long ull; } value;
} field_t;
typedef struct { void *device; unsigned long long type, data; unsigned int gpu_instance, compute_instance; } event_t;
typedef struct { int generation, number, instance; } gpu_t; /* instance 0 is the GPU itself */
typedef struct { unsigned int multiprocessors, shared[5], slices, compute_slices; unsigned long long memory_mib; } attributes_t;
typedef struct { unsigned long long types[MOST_GPUS]; } event_set_t;

static int users, generation, told, flooded;
static int lost_since_start[MOST_GPUS];
static gpu_t gpus[GENERATIONS][MOST_GPUS];

static int is(const char *scenario) {
    const char *given = getenv("FAKE_NVML");
    return given != NULL && strcmp(given, scenario) == 0;
}

/* A test of a node that is misspelt would be one of a healthy node. */
static void know_the_scenario(void) {
    const char *known[] = {"healthy", "uninitialized", "empty", "lost", "mig", "unknown", "broken"};
    const char *given = getenv("FAKE_NVML");
    for (size_t i = 0; given != NULL && i < sizeof known / sizeof *known; i++)
        if (strcmp(given, known[i]) == 0) return;
    if (given == NULL) return;
    fprintf(stderr, "FAKE_NVML=%s is not known\n", given);
    abort();
}

static void note(const char *call) {
    const char *path = getenv("FAKE_NVML_CALLS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) return;
    fprintf(file, "%s\n", call);
    fclose(file);
}

static int entered(void) {
    do {
        read_script();
    } while (said("hang", -1) != NULL && (pause_ms(POLL_MS), 1));
    return said("fail", -1) != NULL ? (int)said("fail", -1)->a : SUCCESS;
}

static int count(void) {
    if (said("count", -1) != NULL) return (int)said("count", -1)->a;
    return is("empty") ? 0 : 2;
}

static int initialised(void) {
    int failure = entered();
    if (failure) return failure;
    return users == 0 ? UNINITIALIZED : SUCCESS;
}

/* The line of an instance, by the number of the GPU and of the GPU instance. */
static const line_t *instance_line(int number, int instance) {
    for (int i = 0; i < line_count; i++)
        if (strcmp(lines[i].word, "instance") == 0 && lines[i].a == number && lines[i].b == instance) return &lines[i];
    return NULL;
}
static int instance_of(void *handle) { return ((const gpu_t *)handle)->instance; }
static int mig_error(void *handle, int call) {
    return instance_of(handle) && said("mig_error", call) != NULL ? (int)said("mig_error", call)->b : SUCCESS;
}

/* Which GPU a handle is. */
static int known(void *handle, int *number) {
    int failure = initialised();
    const gpu_t *gpu = handle;
    if (failure) return failure;
    if (gpu == NULL || gpu->generation != generation) return INVALID_ARGUMENT;
    if (gpu->instance && instance_line(gpu->number, gpu->instance) == NULL) return INVALID_ARGUMENT;
    *number = gpu->number;
    return is("broken") || (is("lost") && *number == 0) ? GPU_IS_LOST : SUCCESS;
}

/* And whether it answers. */
static int reached(void *handle, int *number) {
    int failure = known(handle, number);
    if (failure) return failure;
    if (said("lost", *number) != NULL || said("nameless", *number) != NULL) lost_since_start[*number] = 1;
    if (lost_since_start[*number]) return GPU_IS_LOST;
    if (said("needs_reset", *number) != NULL) return RESET_REQUIRED;
    return said("unreadable", *number) != NULL ? UNKNOWN : SUCCESS;
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    know_the_scenario();
    note("init");
    int failure = entered();
    if (failure) return failure;
    if (is("uninitialized")) return DRIVER_NOT_LOADED;
    if (is("unknown")) return BEYOND_THE_LIST;
    if (users++ == 0) {
        generation++;
        memset(lost_since_start, 0, sizeof lost_since_start);
    }
    return SUCCESS;
}
int nvmlShutdown(void) {
    note("shutdown");
    if (users == 0) return UNINITIALIZED;
    users--;
    return SUCCESS;
}
const char *nvmlErrorString(int error) { (void)error; return "an error newer than the bindings"; }
int nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    int failure = initialised();
    if (failure) return failure;
    snprintf(version, length, "580.95.05");
    return SUCCESS;
}
int nvmlDeviceGetCount_v2(unsigned int *found) {
    note("look");
    int failure = initialised();
    if (failure) return failure;
    *found = count();
    return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    int failure = initialised();
    if (failure) return failure;
    if (index >= (unsigned int)count()) return INVALID_ARGUMENT;
    if (said("nameless", index) != NULL) return GPU_IS_LOST;
    gpu_t *gpu = &gpus[generation % GENERATIONS][index];
    gpu->generation = generation;
    gpu->number = index;
    gpu->instance = 0;
    *handle = gpu;
    return SUCCESS;
}
/* NVML knows it by heart, even of a GPU that was lost. */
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int length) {
    int number, failure = known(handle, &number);
    if (failure) return failure;
    if (said("nameless", number) != NULL) return GPU_IS_LOST;
    if ((failure = mig_error(handle, 8))) return failure;
    if (instance_of(handle)) snprintf(uuid, length, "MIG-00000000-0000-0000-%04d-%012d", number, instance_of(handle));
    else snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012d", number);
    return SUCCESS;
}
static int slices_of(void *handle) {
    const gpu_t *gpu = handle;
    return gpu->instance ? (int)instance_line(gpu->number, gpu->instance)->c : 8;
}
static const char *profile_of(int slices) {
    static const char *profiles[] = {"", "1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "", "", "7g.141gb"};
    return profiles[slices];
}
int nvmlDeviceGetName(void *handle, char *name, unsigned int length) {
    int number, failure = reached(handle, &number);
    if (failure || (failure = mig_error(handle, 6))) return failure;
    if (instance_of(handle)) snprintf(name, length, "NVIDIA H200 MIG %s", profile_of(slices_of(handle)));
    else snprintf(name, length, "NVIDIA H200");
    return SUCCESS;
}
/* The memory of a GPU in MIG mode is told whoever may monitor MIG. */
static int memory_error(void *handle, int number) {
    const line_t *mig = said("mig", number);
    return said("unprivileged", -1) != NULL && !instance_of(handle) && mig != NULL && mig->b ? NO_PERMISSION : SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    int number, failure = reached(handle, &number);
    if (failure || (failure = mig_error(handle, 7)) || (failure = memory_error(handle, number))) return failure;
    memory->total = (143771ULL << 20) * slices_of(handle) / 8;
    memory->free = 143000ULL << 20;
    memory->used = 771ULL << 20;
    return SUCCESS;
}
int nvmlDeviceGetMinorNumber(void *handle, unsigned int *minor) {
    int number, failure = known(handle, &number);
    if (failure) return failure;
    *minor = number;
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *pci) {
    int number, failure = known(handle, &number);
    if (failure) return failure;
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "0000FFF%d:3B:00.0", number);
    return SUCCESS;
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    *millijoules = said("energy", number) != NULL ? said("energy", number)->b : 5000000;
    return SUCCESS;
}

int nvmlDeviceGetComputeMode(void *handle, unsigned int *mode) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    *mode = said("compute_mode", number) != NULL ? said("compute_mode", number)->b : 0;
    return SUCCESS;
}

int nvmlEventSetCreate(void **events) {
    int failure = initialised();
    if (failure) return failure;
    *events = calloc(1, sizeof(event_set_t));
    return SUCCESS;
}
int nvmlEventSetFree(void *events) { free(events); return SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(void *handle, unsigned long long *types) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    *types = said("events", number) != NULL ? said("events", number)->b : EVERY_EVENT;
    return SUCCESS;
}
int nvmlDeviceRegisterEvents(void *handle, unsigned long long types, void *events) {
    unsigned long long supported;
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    nvmlDeviceGetSupportedEventTypes(handle, &supported);
    if (types & ~supported) return NOT_SUPPORTED;
    if (said("register_fails", number) != NULL) return (int)said("register_fails", number)->b;
    ((event_set_t *)events)->types[number] = types;
    return SUCCESS;
}

/* Take the next line that tells of an event. */
static int next_event(const event_set_t *set, event_t *event) {
    for (int i = 0, place = 0; i < line_count; i++) {
        const line_t *line = &lines[i];
        int is_flood = strcmp(line->word, "flood") == 0, is_part = strcmp(line->word, "xid_on") == 0;
        int is_xid = is_flood || is_part || strcmp(line->word, "xid") == 0;
        if ((!is_xid && strcmp(line->word, "event") != 0) || place++ < told) continue;
        unsigned long long type = is_xid ? XID : line->b;
        if (!is_flood || ++flooded >= line->c) told = place;
        if (!(set->types[line->a] & type)) continue;
        *event = (event_t){&gpus[generation % GENERATIONS][line->a], type, is_xid ? line->b : line->c,
                           is_part ? line->c : ~0U, is_part ? 0 : ~0U};
        return 1;
    }
    return 0;
}

int nvmlEventSetWait_v2(void *events, event_t *event, unsigned int timeout_ms) {
    note("wait");
    for (unsigned int waited_ms = 0;; waited_ms += POLL_MS) {
        int failure = initialised();
        if (failure) return failure;
        if (said("wait_fails", -1) != NULL) return (int)said("wait_fails", -1)->a;
        if (next_event(events, event)) return SUCCESS;
        if (waited_ms >= timeout_ms || said("wait_returns", -1) != NULL) return TIMEOUT;
        pause_ms(POLL_MS);
    }
}

#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2_t *memory) {
    int number, failure = reached(handle, &number);
    if (failure || (failure = memory_error(handle, number))) return failure;
    if (memory->version != (sizeof *memory | 2U << 24)) return ARGUMENT_VERSION_MISMATCH;
    memory->total = (143771ULL << 20) * slices_of(handle) / 8;
    memory->reserved = instance_of(handle) ? 0 : said("reserved", number) != NULL ? said("reserved", number)->b << 20 : 771ULL << 20;
    memory->free = 143000ULL << 20;
    memory->used = 0;
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = said("cuda", -1) != NULL ? (int)said("cuda", -1)->a : 13010;
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    *major = said("pascal", number) != NULL ? 6 : 9;
    *minor = 0;
    return SUCCESS;
}
int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    const line_t *line = said("mig", number);
    if (line == NULL && !is("mig")) return NOT_SUPPORTED;
    *current = *pending = line != NULL ? line->b : number == 1;
    return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *most) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    if (said("mig_error", 1) != NULL) return (int)said("mig_error", 1)->b;
    *most = SLICES;
    return SUCCESS;
}
static gpu_t instances[GENERATIONS][MOST_GPUS][MOST_INSTANCES];
/* The numbers of instances are their places: what is destroyed leaves a gap. */
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int index, void **instance) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    if (index >= SLICES) return INVALID_ARGUMENT;
    if (instance_line(number, index + 1) == NULL) return NOT_FOUND;
    if (said("mig_error", 2) != NULL) return (int)said("mig_error", 2)->b;
    gpu_t *made = &instances[generation % GENERATIONS][number][index];
    *made = (gpu_t){generation, number, index + 1};
    *instance = made;
    return SUCCESS;
}
int nvmlDeviceGetGpuInstanceId(void *handle, unsigned int *id) {
    int number, failure = reached(handle, &number);
    if (failure || (failure = mig_error(handle, 3))) return failure;
    *id = instance_of(handle);
    return SUCCESS;
}
int nvmlDeviceGetComputeInstanceId(void *handle, unsigned int *id) {
    int number, failure = reached(handle, &number);
    if (failure || (failure = mig_error(handle, 4))) return failure;
    *id = 0;
    return SUCCESS;
}
int nvmlDeviceGetAttributes_v2(void *handle, attributes_t *attributes) {
    int number, failure = reached(handle, &number);
    if (failure || (failure = mig_error(handle, 5))) return failure;
    memset(attributes, 0, sizeof *attributes);
    attributes->slices = attributes->compute_slices = slices_of(handle);
    attributes->memory_mib = 143771ULL * slices_of(handle) / 8;
    return SUCCESS;
}
static int common_ancestor(int one, int other) {
    for (int i = 0; i < line_count; i++) {
        const line_t *line = &lines[i];
        if (strcmp(line->word, "ancestor") == 0 && ((line->a == one && line->b == other) || (line->a == other && line->b == one)))
            return (int)line->c;
    }
    return -1;
}
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, int *level) {
    int first, second, failure = reached(one, &first);
    if (failure || (failure = reached(other, &second))) return failure;
    *level = common_ancestor(first, second);
    return *level < 0 ? NOT_SUPPORTED : SUCCESS;
}

/* To which GPU a link leads: -1 to a switch, -2 if there is no such link. */
static int link_end(int number, unsigned int link) {
    for (int i = 0; i < line_count; i++) {
        const line_t *line = &lines[i];
        if (strcmp(line->word, "nvlink") == 0 && (line->a == number || line->b == number)) {
            if (link < line->c) return (int)(line->a == number ? line->b : line->a);
            link -= line->c;
        }
    }
    return -2;
}
int nvmlDeviceGetNvLinkState(void *handle, unsigned int link, unsigned int *active) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    if (link_end(number, link) == -2) return link == 0 ? NOT_SUPPORTED : INVALID_ARGUMENT;
    *active = 1;
    return SUCCESS;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned int link, pci_t *pci) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    memset(pci, 0, sizeof *pci);
    int end = link_end(number, link);
    if (end == -2) return INVALID_ARGUMENT;
    snprintf(pci->bus_id, sizeof pci->bus_id, end == -1 ? "00000000:C8:00.0" : "0000FFF%d:3B:00.0", end);
    return SUCCESS;
}
int nvmlDeviceGetNumaNodeId(void *handle, unsigned int *node) {
    int number, failure = known(handle, &number);
    if (failure) return failure;
    *node = number;
    return SUCCESS;
}
int nvmlDeviceGetFieldValues(void *handle, int asked, field_t *fields) {
    int number, failure = reached(handle, &number);
    if (failure) return failure;
    for (int i = 0; i < asked; i++) {
        memset(&fields[i].value, 0, sizeof fields[i].value);
        fields[i].result = fields[i].field == 230 && said("tells_nothing", -1) == NULL ? SUCCESS : NOT_SUPPORTED;
        fields[i].type = said("recovery_type", -1) != NULL ? said("recovery_type", -1)->a : 1;
        fields[i].value.ui = said("recovery", number) != NULL ? said("recovery", number)->b : 0;
    }
    return SUCCESS;
}
#endif
