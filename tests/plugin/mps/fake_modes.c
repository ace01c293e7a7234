/*
 * A libnvidia-ml.so.1 for tests of compute modes: GPUs that other processes can see changed.
 *
 * FAKE_MODES names a folder: `gpus` holds a UUID on each line, `mode-<UUID>` a compute mode, 0 where there is no such
 * file, `old-<UUID>` makes it a GPU before Volta, `refuse-<UUID>` an error number for each change of it, and `down` one for each start of NVML; while there is a
 * file `hangs`, that does not return. `compute-<UUID>` and `clients-<UUID>` list processes as "PID bytes", -1 for a
 * number that is not available, and `busy-<UUID>` samples as "PID percent microseconds"; without the second there is no
 * such function. `draws-<UUID>` lists processes that draw, likewise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, MOST = 8 };

typedef struct { unsigned long long total, free, used; } memory_t;

static char uuids[MOST][64];

static FILE *open_named(const char *name, const char *of, const char *mode) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s%s", getenv("FAKE_MODES"), name, of);
    return fopen(path, mode);
}

static int number_in(const char *name, const char *of) {
    int number = 0;
    FILE *file = open_named(name, of, "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%d", &number) != 1) number = 0;
    fclose(file);
    return number;
}

static int count(void) {
    int found = 0;
    FILE *file = open_named("gpus", "", "r");
    if (file == NULL) return 0;
    while (found < MOST && fscanf(file, "%63s", uuids[found]) == 1) found++;
    fclose(file);
    return found;
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    while (number_in("hangs", "")) usleep(10000);
    return number_in("down", "");
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int error) { (void)error; return "an error newer than the bindings"; }
int nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    snprintf(version, length, "580.95.05");
    return SUCCESS;
}
int nvmlDeviceGetCount_v2(unsigned int *number) { *number = count(); return SUCCESS; }
/* A handle is the address of the GPU's UUID. */
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    if ((int)index >= count()) return NOT_FOUND;
    *handle = uuids[index];
    return SUCCESS;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    for (int index = 0, all = count(); index < all; index++) {
        if (strcmp(uuids[index], uuid) != 0) continue;
        *handle = uuids[index];
        return SUCCESS;
    }
    return NOT_FOUND;
}
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int length) {
    snprintf(uuid, length, "%s", (char *)handle);
    return SUCCESS;
}
int nvmlDeviceGetName(void *handle, char *name, unsigned int length) {
    (void)handle;
    snprintf(name, length, "NVIDIA H200");
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    (void)handle;
    memory->total = 143771ULL << 20;
    memory->free = memory->used = 0;
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    *major = number_in("old-", handle) ? 6 : 9;
    *minor = 0;
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13010; return SUCCESS; }
int nvmlDeviceGetComputeMode(void *handle, unsigned int *mode) {
    *mode = number_in("mode-", handle);
    return SUCCESS;
}
int nvmlDeviceSetComputeMode(void *handle, unsigned int mode) {
    char after_nvml_failure[512], seen[512];
    int refused = number_in("refuse-", handle);
    FILE *file = refused ? NULL : open_named("new-", handle, "w");
    if (file == NULL) return refused;
    fprintf(file, "%u", mode);
    fclose(file);
    snprintf(after_nvml_failure, sizeof after_nvml_failure, "%s/new-%s", getenv("FAKE_MODES"), (char *)handle);
    snprintf(seen, sizeof seen, "%s/mode-%s", getenv("FAKE_MODES"), (char *)handle);
    return rename(after_nvml_failure, seen);
}

typedef struct { unsigned int pid; unsigned long long memory; unsigned int instance, compute_instance; } process_t;
typedef struct { unsigned int pid; unsigned long long at; unsigned int sm, memory, encoder, decoder; } sample_t;

static int listed(const char *name, const char *of, unsigned int *count, process_t *processes) {
    unsigned int found = 0, pid;
    long long memory;
    FILE *file = open_named(name, of, "r");
    if (file == NULL) return NOT_SUPPORTED;
    while (fscanf(file, "%u %lld", &pid, &memory) == 2) {
        if (processes != NULL && found < *count) {
            memset(&processes[found], 0, sizeof *processes);
            processes[found].pid = pid;
            processes[found].memory = (unsigned long long)memory;
        }
        found++;
    }
    fclose(file);
    int fits = processes != NULL && found <= *count;
    *count = found;
    return found == 0 || fits ? SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, process_t *processes) {
    int code = listed("compute-", handle, count, processes);
    if (code == NOT_SUPPORTED) *count = 0;
    return code == NOT_SUPPORTED ? SUCCESS : code;
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *handle, unsigned int *count, process_t *processes) {
    return listed("clients-", handle, count, processes);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *count, process_t *processes) {
    return listed("draws-", handle, count, processes);
}
int nvmlDeviceGetProcessUtilization(void *handle, sample_t *samples, unsigned int *count, unsigned long long since) {
    unsigned int found = 0, pid, percent;
    unsigned long long at;
    FILE *file = open_named("busy-", handle, "r");
    (void)since; /* a driver may give older ones, too */
    if (file == NULL) return NOT_FOUND;
    while (fscanf(file, "%u %u %llu", &pid, &percent, &at) == 3) {
        if (samples != NULL && found < *count) samples[found] = (sample_t){pid, at, percent, 0, 0, 0};
        found++;
    }
    fclose(file);
    int fits = samples != NULL && found <= *count;
    *count = found;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}
