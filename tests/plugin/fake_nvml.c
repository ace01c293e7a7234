/*
 * A libnvidia-ml.so.1 for tests, so that the real Python bindings are exercised.
 *
 * FAKE_NVML says what the node is like: healthy, uninitialized, empty, lost, mig, unknown, broken.
 * FAKE_NVML_CALLS names a file that gets a line for each start and each shutdown.
 * With -DOLD the functions that older drivers lack are missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15, BEYOND_THE_LIST = 777 };

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_t;

static int is(const char *scenario) {
    const char *given = getenv("FAKE_NVML");
    return given != NULL && strcmp(given, scenario) == 0;
}

static void note(const char *call) {
    const char *path = getenv("FAKE_NVML_CALLS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) return;
    fprintf(file, "%s\n", call);
    fclose(file);
}

/* A handle is the address of the GPU's number. */
static int numbers[] = {0, 1};
static int number_of(void *handle) { return *(int *)handle; }
static int broken(void *handle) { return is("broken") || (is("lost") && number_of(handle) == 0); }

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    note("init");
    if (is("uninitialized")) return DRIVER_NOT_LOADED;
    return is("unknown") ? BEYOND_THE_LIST : SUCCESS;
}
int nvmlShutdown(void) { note("shutdown"); return SUCCESS; }
const char *nvmlErrorString(int error) { (void)error; return "an error newer than the bindings"; }
int nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    snprintf(version, length, "580.95.05");
    return SUCCESS;
}
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = is("empty") ? 0 : 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    *handle = &numbers[index];
    return SUCCESS;
}
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int length) {
    if (broken(handle)) return GPU_IS_LOST;
    snprintf(uuid, length, "GPU-00000000-0000-0000-0000-00000000000%d", number_of(handle));
    return SUCCESS;
}
int nvmlDeviceGetName(void *handle, char *name, unsigned int length) {
    if (broken(handle)) return GPU_IS_LOST;
    snprintf(name, length, "NVIDIA H200");
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    if (broken(handle)) return GPU_IS_LOST;
    memory->total = 143771ULL << 20;
    memory->free = 143000ULL << 20;
    memory->used = 771ULL << 20;
    return SUCCESS;
}
int nvmlDeviceGetMinorNumber(void *handle, unsigned int *minor) { *minor = number_of(handle); return SUCCESS; }
int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "0000FFF%d:3B:00.0", number_of(handle));
    return SUCCESS;
}
#ifndef OLD
int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending) {
    if (!is("mig")) return NOT_SUPPORTED;
    *current = *pending = number_of(handle) == 1;
    return SUCCESS;
}
int nvmlDeviceGetNumaNodeId(void *handle, unsigned int *node) { *node = number_of(handle); return SUCCESS; }
#endif
