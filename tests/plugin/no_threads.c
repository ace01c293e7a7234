/*
 * A node whose processes and threads are used up while the file NO_THREADS is there, or after a process has created
 * THREADS_LEFT: no thread can be created. A vfork fails always, since none can be handed on from here; Python takes a
 * fork then.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*creates)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    static atomic_int created;
    const char *left = getenv("THREADS_LEFT");
    if (access(getenv("NO_THREADS"), F_OK) == 0 || (left && created++ >= atoi(left)))
        return EAGAIN;
    creates create = (creates)dlsym(RTLD_NEXT, "pthread_create");
    return create(thread, attributes, run, argument);
}

pid_t vfork(void) {
    errno = EAGAIN;
    return -1;
}
