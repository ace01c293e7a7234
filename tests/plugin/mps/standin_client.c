/* The nvidia-cuda-mps-control of the tests: a command from stdin goes to the daemon, and its answer to stdout. In C,
 * since there are many of these. With -d it becomes the daemon, the script of its name in `daemon` beside it. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int fails(const char *why) {
    fprintf(stderr, "%s\n", why);
    return 1;
}

/* Copy all that can be read; -1 where it cannot be written. */
static int copy(int from, int to) {
    char data[1 << 16];
    ssize_t length;
    while ((length = read(from, data, sizeof data)) > 0)
        for (ssize_t at = 0, written; at < length; at += written)
            if ((written = write(to, data + at, length - at)) < 0)
                return -1;
    return length < 0 ? -1 : 0;
}

static int becomes_daemon(char **arguments) {
    char self[PATH_MAX], daemon[PATH_MAX + sizeof "/daemon/nvidia-cuda-mps-control"];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return fails("no /proc/self/exe");
    self[length] = 0;
    snprintf(daemon, sizeof daemon, "%s/daemon/nvidia-cuda-mps-control", dirname(self));
    arguments[0] = daemon;
    execv(daemon, arguments);
    return fails("no daemon beside it");
}

int main(int count, char **arguments) {
    for (int at = 1; at < count; at++)
        if (!strcmp(arguments[at], "-d"))
            return becomes_daemon(arguments);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *pipes = getenv("CUDA_MPS_PIPE_DIRECTORY"), *name = getenv("STANDIN_SOCKET");
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", pipes ? pipes : "", name ? name : "control");
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address))
        return fails("Cannot find MPS control daemon process");
    return copy(0, connection) || copy(connection, 1) ? fails("the daemon has gone") : 0;
}
